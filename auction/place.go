package auction

import (
	"fmt"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A Result says for each item of a batch where it goes or why it goes nowhere.
// Every item is in exactly one of the two lists; duplicates are there once.
type Result struct {
	// Placements and Refusals are in the order of work.
	Placements []Placement
	Refusals   []Refusal
	// InvalidCells got no work because of what they say of themselves, by id.
	InvalidCells []InvalidCell
}

// An InvalidCell is a cell whose state cannot be trusted. Cells that share an id
// are all invalid, and listed once.
type InvalidCell struct {
	CellID string
	// Err is a [*executor.ValidationError].
	Err error
}

// Place chooses cells for a batch of work; see the package's documentation for
// the rules. It changes neither of its arguments. The result depends on what
// they hold and not on their order.
//
// Place fails with a [*executor.ValidationError] if the policy is invalid, and
// then places nothing. Invalid items are refused and invalid cells get no work;
// neither keeps the rest from being placed.
func Place(cells []CellState, work []Item, p Policy) (Result, error) {
	var v executor.Validator
	p.Validate(&v)
	if err := v.Err(); err != nil {
		return Result{}, err
	}
	f := newFleet(cells, &p)
	b := newBatch(work, f)
	a := auction{
		fleet: f, batch: b, policy: &p,
		census: census{onCell: make([]int32, len(f.cells)), inZone: make([]int32, f.zones)},
		result: Result{InvalidCells: f.invalid},
		shapes: map[shape]int{},
	}
	a.result.Placements = make([]Placement, 0, len(b.entries))
	for _, e := range b.entries {
		a.place(&e)
	}
	a.explain()
	return a.result, nil
}

// An auction is one call of Place.
type auction struct {
	fleet  *fleet
	batch  *batch
	policy *Policy
	census census
	result Result
	// shapes leads to the first refusal of each shape, which the others share.
	shapes map[shape]int
	// unexplained are the refusals that have no explanation yet, by the place
	// of the refusal whose explanation is theirs.
	unexplained []unexplained
}

// A shape is all of an item that matters for which cells can take it.
type shape struct {
	wants int32
	need  need
}

type unexplained struct {
	refusal, like int
	wants         int32
}

func (a *auction) place(e *entry) {
	item, w := &a.batch.items[e.item], &a.batch.wants[e.wants]
	if err := item.invalid(); err != nil {
		a.refuse(Refusal{Item: item, Error: lrp.PlacementError{Reason: lrp.NoCompatibleCells, Detail: err.Error()}, Invalid: err})
		return
	}
	if len(a.fleet.cells) == 0 {
		a.refuse(Refusal{Item: item, Error: lrp.PlacementError{Reason: lrp.CellsUnreachable}})
		return
	}
	if limit := a.policy.MaxStarting; limit > 0 && a.fleet.inFlight >= limit {
		a.refuse(Refusal{Item: item, Error: lrp.PlacementError{
			Reason: lrp.TooManyStarting,
			Detail: fmt.Sprintf("%d containers are starting, the limit is %d", a.fleet.inFlight, limit),
		}})
		return
	}
	if item.Kind == LRP {
		a.census.load(&a.batch.owners[e.owner], a.fleet)
	}
	if a.policy.own() {
		a.placeByScan(item, w)
		return
	}
	if w.hopeless(item.need()) {
		a.refuseShape(item, e.wants)
		return
	}
	chosen := a.fleet.pick(item, w, &a.census)
	if chosen.cell == none {
		w.refuse(item.need())
		a.refuseShape(item, e.wants)
		return
	}
	a.take(item, chosen)
	a.fleet.refresh(chosen.cell)
}

// placeByScan also shows the policy's rules what is on the cell by now, and
// explains a refusal at once, as nobody knows what the rules will say later.
func (a *auction) placeByScan(item *Item, w *wants) {
	chosen := a.fleet.scan(item, w, &a.census, a.policy)
	if chosen.cell == none {
		r := Refusal{Item: item}
		r.Error, r.Explanation = a.fleet.refusal(item, w, a.policy)
		a.refuse(r)
		return
	}
	a.take(item, chosen)
	state := &a.fleet.cells[chosen.cell].state
	if item.Kind == Task {
		state.Tasks = append(state.Tasks, item.GUID)
	} else {
		state.LRPs = append(state.LRPs, item.Key.LRP())
	}
}

func (a *auction) take(item *Item, chosen pick) {
	p := Placement{Item: item, Choice: a.choice(item, chosen.cell, chosen.preference)}
	if chosen.runnerUp != none {
		p.RunnerUp = a.choice(item, chosen.runnerUp, chosen.runnerUpPreference)
	}
	a.result.Placements = append(a.result.Placements, p)
	a.fleet.reserve(chosen.cell, item)
	if item.Kind == LRP {
		a.census.add(chosen.cell, a.fleet)
	}
}

func (a *auction) choice(item *Item, n int32, preference float64) Choice {
	c := &a.fleet.cells[n]
	inZone, onCell := a.census.at(n, a.fleet, item.Kind)
	s := a.fleet.explain(n, item, inZone, onCell)
	s.Preference = preference
	return Choice{CellID: c.state.ID, Score: s}
}

func (a *auction) refuse(r Refusal) { a.result.Refusals = append(a.result.Refusals, r) }

// refuseShape refuses an item with the explanation of its shape, which is
// found out when the batch is done.
func (a *auction) refuseShape(item *Item, wants int32) {
	n := len(a.result.Refusals)
	a.refuse(Refusal{Item: item})
	first, ok := a.shapes[shape{wants, item.need()}]
	if !ok {
		first = n
		a.shapes[shape{wants, item.need()}] = n
	}
	a.unexplained = append(a.unexplained, unexplained{n, first, wants})
}

func (a *auction) explain() {
	for _, u := range a.unexplained {
		r := &a.result.Refusals[u.refusal]
		if u.like == u.refusal {
			r.Error, r.Explanation = a.fleet.refusal(r.Item, &a.batch.wants[u.wants], a.policy)
		} else {
			like := &a.result.Refusals[u.like]
			r.Error, r.Explanation = like.Error, like.Explanation
		}
	}
}
