package system_test

import (
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

// A router sends requests to every instance that was routable at any time in the
// last seconds, as it may not have heard of the newest events.
type router struct {
	w       *town
	delay   time.Duration
	known   map[lrp.InstanceKey]time.Time // when each was last routable
	refused []lrp.InstanceKey
}

// follow reads the routes and makes a request of each.
func (r *router) follow() {
	r.w.t.Helper()
	now := r.w.clock.Now()
	for record, err := range r.w.store.ActualLRPs(r.w.ctx, storage.ActualLRPFilter{}) {
		r.w.must(err)
		if record.State == lrp.Running && record.Routable {
			r.known[record.InstanceKey] = now
		}
	}
	for key, last := range r.known {
		if now.Sub(last) > r.delay {
			continue
		}
		for _, c := range r.w.cells {
			if k, _ := c.manager.Get(key.InstanceGUID); c.id == key.CellID && k.State != executor.Running {
				r.refused = append(r.refused, key)
			}
		}
	}
}

func (r *router) pass(seconds int) {
	r.w.t.Helper()
	for range seconds {
		r.w.pass(time.Second)
		r.follow()
	}
}

// A router that is up to four seconds late loses no request to a rollout or an
// evacuation.
func TestARouterThatIsLateLosesNoRequest(t *testing.T) {
	for _, c := range []struct {
		name  string
		begin func(*town)
		done  func(*town) bool
	}{
		{"a rollout", func(w *town) {
			id, next := "v2", doing("wait forever")
			w.must(w.BBS.UpdateDeployment(w.ctx, "web", lrp.Update{DefinitionID: &id, Definition: &next}))
		}, func(w *town) bool {
			d, err := w.BBS.RolloutStatus(w.ctx, "web")
			w.must(err)
			return d.Complete()
		}},
		{"an evacuation", func(w *town) { w.must(w.cells[0].Evacuate(w.ctx)) },
			func(w *town) bool { return w.cells[0].Evacuated() }},
		{"a rollout during an evacuation", func(w *town) {
			w.must(w.cells[0].Evacuate(w.ctx))
			id, next := "v2", doing("wait forever")
			w.must(w.BBS.UpdateDeployment(w.ctx, "web", lrp.Update{DefinitionID: &id, Definition: &next}))
		}, func(w *town) bool {
			d, err := w.BBS.RolloutStatus(w.ctx, "web")
			w.must(err)
			return d.Complete() && w.cells[0].Evacuated()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newTown(t, 3, nil)
			w.desire("web", 6, doing("wait forever"))
			r := &router{w: w, delay: 4 * time.Second, known: map[lrp.InstanceKey]time.Time{}}
			r.pass(5)
			c.begin(w)
			for range 120 {
				if c.done(w) {
					break
				}
				r.pass(1)
			}
			if !c.done(w) {
				t.Errorf("it is not done after two minutes; the records are %q", w.records())
			}
			r.pass(10)
			if len(r.refused) > 0 {
				t.Errorf("requests were lost to %v", r.refused)
			}
		})
	}
}

// What has no successor is not waited for.
func TestAnInstanceThatItsConsumerStopsIsStoppedAtOnce(t *testing.T) {
	w := newTown(t, 1, nil)
	w.desire("web", 2, doing("wait forever"))
	w.pass(5 * time.Second)
	w.must(w.BBS.DeleteDeployment(w.ctx, "web"))
	w.pass(4 * time.Second) // a step for each who has a part in it
	w.wantRecords()
	w.wantEmpty(w.cells...)
}

// The cell does not poll for the moment at which its replacements run.
func TestAnEvacuatingCellHearsOfItsReplacementsAtOnce(t *testing.T) {
	w := newTown(t, 2, func(o *rep.Options) { o.EvacuationInterval, o.StopPause = time.Hour, -1 })
	w.desire("web", 4, doing("wait forever"))
	w.pass(5 * time.Second)
	w.must(w.cells[0].Evacuate(w.ctx))
	if took := w.until("evacuated", w.cells[0].Evacuated); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	if got := w.records(); slices.ContainsFunc(got, func(r string) bool { return r[len(r)-1] != '2' }) {
		t.Errorf("the records are %q", got)
	}
}
