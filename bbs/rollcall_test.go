package bbs

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

func (c *deafCell) Inventory(context.Context) (auction.Inventory, error) {
	return auction.Inventory{CellID: "cell-1"}, c.wait()
}

func TestARollCallDoesNotWaitForTheDeafBeyondItsTimeout(t *testing.T) {
	for name, lists := range map[string]bool{"a cell": false, "the directory": true} {
		t.Run(name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				service, err := New(Options{Store: memstore.New(nil), Effects: nobody{}})
				must := func(err error) {
					t.Helper()
					if err != nil {
						t.Fatal(err)
					}
				}
				must(err)
				must(service.Desire(t.Context(), lrp.DesiredLRP{
					ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1},
					Definition: lrp.Definition{RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}}}},
				}))
				must(service.ClaimLRP(t.Context(), "web", 0, lrp.Claim{Instance: lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-1"}}))
				c := &deafCell{release: make(chan struct{}), lists: lists}
				r := &rollCall{
					bbs: service, directory: c, timeout: 10 * time.Second, concurrency: 2,
					now: time.Now, metrics: auction.NoMetrics{}, logger: slog.New(slog.DiscardHandler),
				}
				for range 10 {
					began := time.Now()
					_ = r.tick(t.Context())
					if took := time.Since(began); took > 10*time.Second {
						t.Fatalf("it took %v", took)
					}
				}
				synctest.Wait()
				if asked := c.asked.Load(); asked != 4 {
					t.Errorf("%d calls were made, want 4 that never return", asked)
				}
				close(c.release)
				synctest.Wait()
				must(r.tick(t.Context()))
				slot, err := service.Slot(t.Context(), "web", 0)
				must(err)
				if len(slot.Records) != 1 || slot.Records[0].State != lrp.Unclaimed {
					t.Errorf("once the cell hears, its record is %+v, want it given up", slot.Records)
				}
			})
		})
	}
}

type nobody struct{}

func (nobody) Carry([]lrp.Effect, []task.Effect) {}
