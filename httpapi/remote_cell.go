package httpapi

import (
	"context"
	"fmt"
	"io"
	"iter"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/wire"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
)

// A RemoteCell calls a [rep.API] over HTTP. All methods may be called at the
// same time.
type RemoteCell struct{ client *wire.Client }

// NewRemoteCell fails with an *executor.ValidationError. It does not connect
// yet.
func NewRemoteCell(o ClientOptions) (*RemoteCell, error) {
	client, err := newClient(o, cellService)
	if err != nil {
		return nil, err
	}
	return &RemoteCell{client}, nil
}

// State implements [rep.API].
func (c *RemoteCell) State(ctx context.Context) (auction.CellState, error) {
	return callState.Do(ctx, c.client, wire.None{})
}

// Perform implements [rep.API]. It sends much work in pieces, one after the other
// in the order of work. An item that is larger than the cell takes is refused. After
// an error, earlier pieces have arrived and later ones were not sent.
func (c *RemoteCell) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	if len(w.Items) == 0 {
		a, err := callPerform.Do(ctx, c.client, w)
		return a.Rejections, err
	}
	var rejections []auction.Rejection
	err := inPieces(len(w.Items),
		func(i int) int { return jsonBytes(&w.Items[i]) + jsonBytes(w.Reason(i)) },
		func(from, to int) error {
			piece := auction.Work{CellID: w.CellID, Items: w.Items[from:to]}
			piece.Reasons = w.Reasons[min(from, len(w.Reasons)):min(to, len(w.Reasons))]
			a, err := callPerform.Do(ctx, c.client, piece)
			rejections = append(rejections, a.Rejections...)
			return err
		},
		func(i int, err error) {
			rejections = append(rejections, auction.Rejection{Key: w.Items[i].Key, Reason: fmt.Sprintf("it is too large to be sent to the cell: %v", err)})
		})
	if err != nil {
		return nil, err
	}
	return rejections, nil
}

// StopLRP implements [rep.API].
func (c *RemoteCell) StopLRP(ctx context.Context, key lrp.Key, instance lrp.InstanceKey) error {
	return say(ctx, c.client, callStopLRP, stopArgs{key, instance})
}

// CancelTask implements [rep.API].
func (c *RemoteCell) CancelTask(ctx context.Context, taskGUID, instanceGUID string) error {
	return say(ctx, c.client, callCancelTaskOnCell, cancelArgs{taskGUID, instanceGUID})
}

// Inventory implements [auction.InventoryClient].
func (c *RemoteCell) Inventory(ctx context.Context) (auction.Inventory, error) {
	return callInventory.Do(ctx, c.client, wire.None{})
}

// Evacuate implements [rep.API].
func (c *RemoteCell) Evacuate(ctx context.Context) error {
	return say(ctx, c.client, callEvacuate, wire.None{})
}

// Evacuation implements [rep.API].
func (c *RemoteCell) Evacuation(ctx context.Context) (rep.EvacuationStatus, error) {
	return callEvacuation.Do(ctx, c.client, wire.None{})
}

// CancelEvacuation implements [rep.Cordoner].
func (c *RemoteCell) CancelEvacuation(ctx context.Context) error {
	return say(ctx, c.client, callCancelEvacuation, wire.None{})
}

// Cordon implements [rep.Cordoner].
func (c *RemoteCell) Cordon(ctx context.Context, cordoned bool) error {
	return say(ctx, c.client, callCordon, cordonArgs{cordoned})
}

// Usages implements [rep.Meter].
func (c *RemoteCell) Usages(ctx context.Context) ([]rep.ContainerUsage, error) {
	return callUsages.Do(ctx, c.client, wire.None{})
}

// Containers implements [rep.API].
func (c *RemoteCell) Containers(ctx context.Context) ([]executor.Container, error) {
	return callContainers.Do(ctx, c.client, wire.None{})
}

// Logs implements [rep.API]. A list that is cut off ends with an error that
// wraps [ErrNoAnswer] or io.ErrUnexpectedEOF, or context.DeadlineExceeded once the
// client's certificate has expired; continue from rep.LogChunk.Next.
func (c *RemoteCell) Logs(ctx context.Context, r rep.LogRequest) iter.Seq2[rep.LogChunk, error] {
	return callLogs.All(ctx, c.client, r)
}

// Exec implements [rep.Sessions]. A session whose connection is lost ends with an
// error that wraps [ErrNoAnswer]; the cell kills its program.
func (c *RemoteCell) Exec(ctx context.Context, r rep.ExecRequest, s executor.Streams) (executor.Exit, error) {
	end, err := callExec.Do(ctx, c.client, r, s)
	return executor.Exit(end), err
}

// CopyIn implements [rep.Sessions].
func (c *RemoteCell) CopyIn(ctx context.Context, r rep.CopyRequest, tar io.Reader) error {
	_, err := callCopyIn.Do(ctx, c.client, r, executor.Streams{Stdin: tar})
	return err
}

// CopyOut implements [rep.Sessions].
func (c *RemoteCell) CopyOut(ctx context.Context, r rep.CopyRequest, tar io.Writer) error {
	_, err := callCopyOut.Do(ctx, c.client, r, executor.Streams{Stdout: tar})
	return err
}

var (
	_ rep.API                 = (*RemoteCell)(nil)
	_ auction.InventoryClient = (*RemoteCell)(nil)
	_ rep.Cordoner            = (*RemoteCell)(nil)
	_ rep.Meter               = (*RemoteCell)(nil)
	_ rep.Sessions            = (*RemoteCell)(nil)
)
