package storage_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

func desire(ctx context.Context, store storage.Store, now time.Time) {
	_, _, err := storage.ApplyDeployment(ctx, store, "web", nil, func(d *lrp.Deployment) (lrp.Change, error) {
		return lrp.Create(lrp.DeploymentDefinition{
			ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1}, DefinitionID: "v1",
			Definition: lrp.Definition{RunInfo: executor.RunInfo{
				RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/bin/web", User: "vcap"}},
			}},
		}, now)
	})
	if err != nil {
		panic(err)
	}
}

// A cell's word changes a slot: read, decide, commit, and only then act.
func ExampleApplySlot() {
	ctx := context.Background()
	store := memstore.New(nil)
	defer store.Close()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	desire(ctx, store, now)

	instance := lrp.InstanceKey{InstanceGUID: "i-1", CellID: "cell-1"}
	for _, command := range []lrp.Command{
		lrp.CreateMissing{},
		lrp.Claim{Instance: instance},
		lrp.Claim{Instance: lrp.InstanceKey{InstanceGUID: "i-2", CellID: "cell-2"}},
	} {
		decision, _, err := storage.ApplySlot(ctx, store, "web", 0, nil, func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
			return lrp.Step(slot, d, command, now, lrp.Policy{})
		})
		if errors.Is(err, lrp.ErrCannotBeClaimed) {
			fmt.Println("refused: the cell gives its reservation up")
			continue
		}
		for _, effect := range decision.Effects {
			fmt.Println("effect:", effect.Kind)
		}
	}
	slot, _, _ := store.Slot(ctx, "web", 0)
	fmt.Println(slot.Records[0].State, "on", slot.Records[0].CellID)
	// Output:
	// effect: RequestStart
	// refused: the cell gives its reservation up
	// CLAIMED on cell-1
}

// A follower of the events keeps the number of the last one and goes on from
// there, after a restart too.
func ExampleStore_events() {
	ctx := context.Background()
	store := memstore.New(nil)
	defer store.Close()
	desire(ctx, store, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	var b storage.Batch
	b.AddDomain("apps", 2*time.Minute)
	store.Commit(ctx, b)

	cursor := storage.Cursor(0)
	for range 2 {
		for event, err := range store.Events(ctx, cursor, storage.EventFilter{Domains: []string{"apps"}}) {
			if errors.Is(err, storage.ErrGone) {
				fmt.Println("too far behind: read the records anew")
				return
			}
			fmt.Println(event.Sequence, event.Subject().Kind)
			cursor = event.Sequence
		}
		fmt.Println("all seen up to", cursor)
	}
	// Output:
	// 1 lrp_deployment_created
	// 2 desired_lrp_created
	// 3 domain_upserted
	// all seen up to 3
	// all seen up to 3
}

// A leader that was paused for too long finds out at its next commit.
func ExampleFence() {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	store := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	defer store.Close()
	leader := storage.Lease{Kind: storage.LeaderLease, Name: "bbs"}

	leader.Owner = "bbs-1"
	first, _ := store.Acquire(ctx, leader, 15*time.Second)
	leader.Owner = "bbs-2"
	_, err := store.Acquire(ctx, leader, 15*time.Second)
	fmt.Println("bbs-2:", errors.Is(err, storage.ErrHeld))

	now = now.Add(time.Minute) // bbs-1 is paused for four times its TTL
	store.Acquire(ctx, leader, 15*time.Second)

	_, err = store.Commit(ctx, storage.Batch{
		Fence:   first.Fence(),
		Domains: []storage.DomainWrite{{Name: "apps"}},
	})
	fmt.Println("bbs-1:", err)
	// Output:
	// bbs-2: true
	// bbs-1: leader lease "bbs": lease has a newer holder: epoch 1 is no longer good, the newest is 2
}
