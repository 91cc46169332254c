package converge_test

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/lrp"
)

// A world is a cluster's records in memory. Only commands change records.
type world struct {
	t           testing.TB
	now         time.Time
	policy      lrp.Policy
	deployments map[string]*lrp.Deployment
	slots       map[slotKey]lrp.Slot
	domains     []lrp.Domain
	cells       []string
}

type slotKey struct {
	guid  string
	index int
}

func newWorld(t testing.TB) *world {
	return &world{
		t: t, now: noon, deployments: map[string]*lrp.Deployment{}, slots: map[slotKey]lrp.Slot{},
		domains: []lrp.Domain{{Name: "apps"}}, cells: []string{"cell-1", "cell-2", "cell-3"},
	}
}

// desire sets how many instances of a process should run; it adds the
// deployment if need be.
func (w *world) desire(guid string, instances int) {
	if d := w.deployments[guid]; d != nil {
		next := *d
		next.Instances = instances
		next.ModificationTag = next.ModificationTag.Next()
		w.deployments[guid] = &next
		return
	}
	w.deployments[guid] = &lrp.Deployment{
		ProcessGUID: guid, Domain: "apps", Settings: lrp.Settings{Instances: instances},
		Definitions: map[string]lrp.Definition{"v1": {}}, ActiveDefinitionID: "v1",
		ModificationTag: lrp.ModificationTag{Epoch: 1},
	}
}

// define adds a definition and makes it the active one.
func (w *world) define(guid, definitionID string) {
	next := *w.deployments[guid]
	next.Definitions = maps.Clone(next.Definitions)
	next.Definitions[definitionID] = lrp.Definition{}
	next.ActiveDefinitionID = definitionID
	next.ModificationTag = next.ModificationTag.Next()
	w.deployments[guid] = &next
}

// do applies commands to a slot; one that is refused fails the test.
func (w *world) do(guid string, index int, commands ...lrp.Command) {
	w.t.Helper()
	for _, c := range commands {
		if err := w.try(guid, index, c); err != nil {
			w.t.Fatalf("%s/%d %+v: %v", guid, index, c, err)
		}
	}
}

func (w *world) try(guid string, index int, c lrp.Command) error {
	key := slotKey{guid, index}
	slot, ok := w.slots[key]
	if !ok {
		slot = lrp.Slot{ProcessGUID: guid, Index: index}
	}
	decision, err := lrp.Step(slot, w.deployments[guid], c, w.now, w.policy)
	if err != nil {
		return err
	}
	if slot = slot.Apply(decision); len(slot.Records) == 0 {
		delete(w.slots, key)
	} else {
		w.slots[key] = slot
	}
	if decision.Deployment != nil {
		w.deployments[guid] = decision.Deployment
	}
	return nil
}

// run brings an instance up on a cell.
func (w *world) run(guid string, index int, instance, cell string) {
	w.t.Helper()
	me := lrp.InstanceKey{InstanceGUID: instance, CellID: cell}
	w.do(guid, index, lrp.CreateMissing{}, lrp.Claim{Instance: me}, lrp.Start{Instance: me})
}

func (w *world) sortedDeployments() []lrp.Deployment {
	var out []lrp.Deployment
	for _, guid := range slices.Sorted(maps.Keys(w.deployments)) {
		out = append(out, *w.deployments[guid])
	}
	return out
}

func (w *world) sortedActuals() []lrp.ActualLRP {
	var out []lrp.ActualLRP
	for _, s := range w.slots {
		out = append(out, s.Records...)
	}
	lrp.SortRecords(out)
	return out
}

func (w *world) snapshot() converge.LRPs {
	return converge.LRPs{
		Deployments: values(w.sortedDeployments()),
		ActualLRPs:  records(w.sortedActuals()),
		Domains:     w.domains,
		Cells:       converge.NewCells(w.cells),
	}
}

// plan is what a pass would do, as text.
func (w *world) plan() []string {
	w.t.Helper()
	return describe(converge.PlanLRPs(w.snapshot(), w.now, w.policy))
}

func describe(plan iter.Seq2[converge.LRPAction, error]) []string {
	out := []string{}
	for a, err := range plan {
		out = append(out, describeOne(a, err))
	}
	return out
}

func describeOne(a converge.LRPAction, err error) string {
	switch {
	case err != nil:
		return "error: " + err.Error()
	case a.Command != nil:
		return fmt.Sprintf("%s/%d %s%+v: %s", a.ProcessGUID, a.Index, a.Command.Name(), a.Command, a.Reason)
	case a.Start != nil:
		return fmt.Sprintf("%s/%d start %s: %s", a.ProcessGUID, a.Index, a.Start.DefinitionID, a.Reason)
	}
	return fmt.Sprintf("%s keep %v: %s", a.ProcessGUID, a.InUse, a.Reason)
}

// apply carries out a whole plan.
func (w *world) apply() (actions int) {
	w.t.Helper()
	var all []converge.LRPAction
	for a, err := range converge.PlanLRPs(w.snapshot(), w.now, w.policy) {
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, a)
	}
	for _, a := range all {
		switch {
		case a.Command != nil:
			w.do(a.ProcessGUID, a.Index, a.Command)
		case a.Start == nil:
			d := w.deployments[a.ProcessGUID]
			change := d.PruneDefinitions(func(id string) bool { return slices.Contains(a.InUse, id) })
			if change.IsZero() {
				w.t.Fatalf("%s: there was nothing to prune", a.ProcessGUID)
			}
			w.deployments[a.ProcessGUID] = change.After
		}
	}
	return len(all)
}

// withErrors yields an error before each value whose index is in at; the index
// len(list) means at the end.
func withErrors[T any](list []T, at ...int) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for i := range len(list) + 1 {
			if slices.Contains(at, i) && !yield(nil, errUnreadable) {
				return
			}
			if i < len(list) && !yield(&list[i], nil) {
				return
			}
		}
	}
}

func recordsWithErrors(list []lrp.ActualLRP, at ...int) iter.Seq2[lrp.ActualLRP, error] {
	return func(yield func(lrp.ActualLRP, error) bool) {
		for r, err := range withErrors(list, at...) {
			if r == nil {
				r = &lrp.ActualLRP{}
			}
			if !yield(*r, err) {
				return
			}
		}
	}
}

var errUnreadable = errors.New("unreadable")
