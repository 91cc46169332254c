// Command minimal is a whole control plane: it keeps instances running on two
// cells, over a crash, the loss of a cell and a change of scale. It imports
// lrp, storage and converge only. Its cells are names: work that is placed on
// one runs at once.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"time"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

const web = `{"process_guid": "web", "domain": "apps", "instances": 3, "definition_id": "v1", "definition":
	{"root_fs": "preloaded:linux", "action": {"run": {"path": "/bin/web", "user": "nobody"}}}}`

type plane struct {
	store  storage.Store
	cells  []string
	placed int
}

// pass mends the difference between what should be and what is.
func (p *plane) pass(ctx context.Context) {
	var actions []converge.LRPAction
	check(p.store.View(ctx, func(r storage.Reader) error {
		plan := converge.PlanLRPs(converge.LRPs{
			Deployments: r.Deployments(ctx, storage.DeploymentFilter{}), ActualLRPs: r.ActualLRPs(ctx, storage.ActualLRPFilter{}),
			Domains: []lrp.Domain{{Name: "apps"}}, Cells: converge.NewCells(p.cells),
		}, time.Now(), lrp.Policy{})
		for action, err := range plan {
			check(err)
			actions = append(actions, action)
		}
		return nil
	}))
	for _, a := range actions {
		fmt.Printf("  web/%d: %v\n", a.Index, a.Reason)
		if a.Command != nil {
			check(p.step(ctx, a.Index, a.Command))
		}
	}
}

// step decides, commits, and carries out what that asks for.
func (p *plane) step(ctx context.Context, index int, c lrp.Command) error {
	decision, _, err := storage.ApplySlot(ctx, p.store, "web", index, nil, func(s lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
		return lrp.Step(s, d, c, time.Now(), lrp.Policy{})
	})
	for _, e := range decision.Effects {
		switch e.Kind {
		case lrp.RequestStart:
			p.placed++
			me := lrp.InstanceKey{InstanceGUID: fmt.Sprint("i-", p.placed), CellID: p.cells[p.placed%len(p.cells)]}
			check(p.step(ctx, e.Key.Index, lrp.Claim{Instance: me}))
			return p.step(ctx, e.Key.Index, lrp.Start{Instance: me, NetInfo: lrp.NetInfo{Address: me.CellID}})
		case lrp.StopInstance:
			return p.step(ctx, e.Key.Index, lrp.Remove{Instance: e.Instance})
		}
	}
	return err
}

func main() {
	ctx, p := context.Background(), &plane{store: memstore.New(nil), cells: []string{"cell-a", "cell-b"}}
	show := func(what string) {
		fmt.Println(what)
		p.pass(ctx)
		for r, err := range p.store.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
			check(err)
			fmt.Printf("  web/%d is %v on %s, crashes: %d\n", r.Index, r.State, r.CellID, r.CrashCount)
		}
	}
	var d lrp.DeploymentDefinition
	check(json.Unmarshal([]byte(web), &d))
	_, _, err := storage.ApplyDeployment(ctx, p.store, "web", nil, func(*lrp.Deployment) (lrp.Change, error) { return lrp.Create(d, time.Now()) })
	check(err)
	show("three instances are desired:")
	check(p.step(ctx, 1, lrp.Crash{Instance: lrp.InstanceKey{InstanceGUID: "i-2", CellID: "cell-a"}, Reason: "out of memory"}))
	show("one has crashed:")
	p.cells = p.cells[1:]
	show("cell-a is lost:")
	one := 1
	_, _, err = storage.ApplyDeployment(ctx, p.store, "web", nil, func(d *lrp.Deployment) (lrp.Change, error) { return d.Update(lrp.Update{Instances: &one}) })
	check(err)
	show("one instance is enough:")
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
