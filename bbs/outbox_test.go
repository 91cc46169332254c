package bbs

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A deafCell is a fleet of one cell, whose calls return when it is released,
// even after the end of their context.
type deafCell struct {
	auction.CellClient
	release chan struct{}
	// lists is true if the list of the cells is late too.
	lists bool
	asked atomic.Int32
}

func (c *deafCell) wait() error {
	c.asked.Add(1)
	<-c.release
	return nil
}

func (c *deafCell) StopLRP(context.Context, lrp.Key, lrp.InstanceKey) error { return c.wait() }
func (c *deafCell) CancelTask(context.Context, string, string) error        { return c.wait() }
func (c *deafCell) Cells(context.Context) ([]auction.Cell, error) {
	if c.lists {
		_ = c.wait()
	}
	return []auction.Cell{{ID: "cell-1", Client: c}}, nil
}

// lostStops counts the looks at which stops were lost.
type lostStops struct {
	auction.NoMetrics
	n int
}

func (l *lostStops) Count(name string, _ int64, labels ...auction.Label) {
	if name == "effects_lost_total" && labels[0].Value != task.CancelOnCell.String() {
		l.n++
	}
}

func TestAnOutboxDoesNotWaitForTheDeafBeyondItsTimeout(t *testing.T) {
	for name, lists := range map[string]bool{"a cell": false, "the directory": true} {
		t.Run(name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				c := &deafCell{release: make(chan struct{}), lists: lists}
				var lost lostStops
				x := &outbox{
					directory: c, timeout: 10 * time.Second, concurrency: 1000,
					metrics: &lost, logger: slog.New(slog.DiscardHandler), local: newMailbox(), remote: newMailbox(),
				}
				carry := func() {
					began := time.Now()
					x.Carry([]lrp.Effect{{Kind: lrp.StopInstance, Instance: lrp.InstanceKey{CellID: "cell-1"}}},
						[]task.Effect{{Kind: task.CancelOnCell, Task: &task.Task{CellID: "cell-1"}}})
					x.tickRemote(t.Context())
					if took := time.Since(began); took > 10*time.Second {
						t.Fatalf("it took %v", took)
					}
				}
				for range 10 {
					carry()
				}
				synctest.Wait()
				if asked := c.asked.Load(); lost.n != 10 || asked != 4 {
					t.Errorf("%d stops are known to be lost and %d calls were made, want 10, and 4 that never return", lost.n, asked)
				}
				close(c.release)
				synctest.Wait()
				if carry(); lost.n != 10 {
					t.Error("once it hears, the stop is lost all the same")
				}
			})
		})
	}
}
