package diego

import (
	"context"
	"iter"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/wire"
	"github.com/diegosdk/diego/lrp"
)

// A CellClient asks a [Cell] over HTTP.
type CellClient struct{ client *wire.Client }

// NewCellClient fails with an *executor.ValidationError. It connects to nothing
// yet.
func NewCellClient(o ClientOptions) (*CellClient, error) {
	client, err := newClient(o, cellService)
	if err != nil {
		return nil, err
	}
	return &CellClient{client}, nil
}

// State implements [Cell].
func (c *CellClient) State(ctx context.Context) (auction.CellState, error) {
	return callState.Do(ctx, c.client, wire.None{})
}

// Perform implements [Cell].
func (c *CellClient) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	a, err := callPerform.Do(ctx, c.client, w)
	return a.Rejections, err
}

// StopLRP implements [Cell].
func (c *CellClient) StopLRP(ctx context.Context, key lrp.Key, instance lrp.InstanceKey) error {
	_, err := callStopLRP.Do(ctx, c.client, stopArgs{key, instance})
	return err
}

// CancelTask implements [Cell].
func (c *CellClient) CancelTask(ctx context.Context, taskGUID, instanceGUID string) error {
	_, err := callCancelTaskOnCell.Do(ctx, c.client, cancelArgs{taskGUID, instanceGUID})
	return err
}

// Inventory implements [auction.InventoryClient].
func (c *CellClient) Inventory(ctx context.Context) (auction.Inventory, error) {
	return callInventory.Do(ctx, c.client, wire.None{})
}

// Evacuate implements [Cell].
func (c *CellClient) Evacuate(ctx context.Context) error {
	_, err := callEvacuate.Do(ctx, c.client, wire.None{})
	return err
}

// Evacuation implements [Cell].
func (c *CellClient) Evacuation(ctx context.Context) (EvacuationStatus, error) {
	return callEvacuation.Do(ctx, c.client, wire.None{})
}

// Containers implements [Cell].
func (c *CellClient) Containers(ctx context.Context) ([]executor.Container, error) {
	return callContainers.Do(ctx, c.client, wire.None{})
}

// Logs implements [Cell]. A list that is cut off ends with an error that wraps
// [ErrNoAnswer] or io.ErrUnexpectedEOF, and may be asked for again from
// LogChunk.Next.
func (c *CellClient) Logs(ctx context.Context, r LogRequest) iter.Seq2[LogChunk, error] {
	return callLogs.All(ctx, c.client, r)
}
