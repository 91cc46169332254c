package auction

import (
	"fmt"
	"slices"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A Result says for each item of a batch where it goes or why it goes nowhere.
// Every item is in exactly one of the two lists, duplicates once.
type Result struct {
	// Placements and Refusals are in the order of work.
	Placements []Placement `json:"placements"`
	Refusals   []Refusal   `json:"refusals"`
	// Packed says that the most even placement left work without room, and that
	// this one leaves less of it; see [Place].
	Packed bool `json:"packed,omitempty"`
	// InvalidCells got no work because of errors in their states; ordered by id.
	InvalidCells []InvalidCell `json:"invalid_cells,omitempty"`
}

// An InvalidCell is a cell whose state is not credible. Cells that share an id
// are all invalid, and listed once.
type InvalidCell struct {
	CellID string `json:"cell_id"`
	// Err is an [*executor.ValidationError].
	Err error `json:"-"` // see MarshalJSON
}

// A Placement says where an item goes and what decided.
type Placement struct {
	// Item is the work as it was passed to Place.
	Item *Item `json:"item"`
	// Choice is the winner.
	Choice
	// RunnerUp is the cell that would have won without the winner. Its CellID is
	// empty if no other cell could take the item.
	RunnerUp Choice `json:"runner_up"`
}

// String describes the placement in one line, for people. The text may change.
func (p Placement) String() string {
	s := fmt.Sprintf("%v goes to %s: %v", p.Item.Key, p.CellID, p.Score)
	if p.RunnerUp.CellID == "" {
		return s + "; no other cell can take it"
	}
	return fmt.Sprintf("%s; runner-up %s: %v", s, p.RunnerUp.CellID, p.RunnerUp.Score)
}

// Place chooses cells for a batch of work; see the package's documentation for
// the rules. It does not change its arguments. The result depends on their
// content and not on their order.
//
// Even use leaves small pieces of room on every cell, which are too small for
// large items. If items are refused for lack of room although the fleet has
// enough in all, Place tries the batch once more, packed. It then compares the
// use of cells in steps of a sixth, and among the cells in the lowest step
// takes the fullest that has room. The packed placement counts if it refuses
// fewer items. All stronger criteria hold in both.
//
// If items are still refused, for lack of room or because too many containers
// are starting, and the batch has work of several domains, Place starts again
// with the domains taking turns. Otherwise a domain with much work that comes early
// in the order could take every free place. The result with turns counts if it
// places an item that was refused without them. If it does not, turns help nobody:
// for example, the only refused item is too large for every cell.
//
// Place fails with an [*executor.ValidationError] if the policy is invalid, and
// then places nothing. Invalid items are refused and invalid cells get no work;
// neither keeps the rest from being placed.
func Place(cells []CellState, work []Item, p Policy) (Result, error) {
	return place(cells, nil, work, p)
}

// place is Place for a fleet that also has cells which do not take part, for
// the given reasons.
func place(cells []CellState, leftOut reasonCounts, work []Item, p Policy) (Result, error) {
	var v executor.Validator
	p.Validate(&v)
	if err := v.Err(); err != nil {
		return Result{}, err
	}
	r := evenOrPacked(cells, leftOut, work, &p, false)
	if r.scarce() && severalDomains(work) {
		if turns := evenOrPacked(cells, leftOut, work, &p, true); turns.placesAny(r.Refusals) {
			return turns, nil
		}
	}
	return r, nil
}

// placesAny reports whether an item that another placement of the same batch
// refused has a place in this one.
func (r *Result) placesAny(refusals []Refusal) bool {
	refused := make(map[*Item]bool, len(refusals))
	for i := range refusals {
		refused[refusals[i].Item] = true
	}
	return slices.ContainsFunc(r.Placements, func(p Placement) bool { return refused[p.Item] })
}

// scarce reports whether items were refused for lack of room or because too many
// containers are starting.
func (r *Result) scarce() bool {
	for i := range r.Refusals {
		if lacksRoom(&r.Refusals[i]) {
			return true
		}
	}
	return false
}

// lacksRoom reports whether the refused work may find room as soon as other work
// ends or has started.
func lacksRoom(r *Refusal) bool {
	return r.Error.Reason == lrp.InsufficientResources || r.Error.Reason == lrp.TooManyStarting
}

func severalDomains(work []Item) bool {
	for i := range work {
		if work[i].Domain != work[0].Domain {
			return true
		}
	}
	return false
}

// evenOrPacked places the batch in the specification's order or with the domains
// taking turns.
func evenOrPacked(cells []CellState, leftOut reasonCounts, work []Item, p *Policy, turns bool) Result {
	even := run(cells, leftOut, work, p, turns, false)
	if even.roomInPieces() {
		if packed := run(cells, leftOut, work, p, turns, true); len(packed.result.Refusals) < len(even.result.Refusals) {
			packed.result.Packed = true
			return packed.result
		}
	}
	return even.result
}

// run places the batch once.
func run(cells []CellState, leftOut reasonCounts, work []Item, p *Policy, turns, packed bool) *auction {
	f := newFleet(cells, p, packed)
	f.leftOut = leftOut
	b := newBatch(work, f, turns)
	a := &auction{
		fleet: f, batch: b, policy: p,
		census: newCensus(f),
		result: Result{InvalidCells: f.invalid},
	}
	a.search = search{fleet: f, census: &a.census}
	a.result.Placements = make([]Placement, 0, len(b.entries))
	for i := range b.entries {
		a.place(&b.entries[i])
	}
	a.explain()
	return a
}

// roomInPieces reports whether items were refused for lack of room, and whether
// all of them would fit if the fleet's room were in one place.
func (a *auction) roomInPieces() bool {
	short, extra, n := need{}, executor.Amounts{}, int64(0)
	for i := range a.result.Refusals {
		if r := &a.result.Refusals[i]; r.Error.Reason == lrp.InsufficientResources {
			short.memoryMB += r.Item.MemoryMB
			short.diskMB += r.Item.DiskMB
			for name, amount := range r.Item.Extra {
				extra[name] += amount
			}
			n++
		}
	}
	if n == 0 {
		return false
	}
	for i := range a.fleet.cells {
		if c := &a.fleet.cells[i]; c.out == "" {
			short.memoryMB -= c.space.memoryMB
			short.diskMB -= c.space.diskMB
			n -= min(n, c.space.containers)
			for _, s := range c.stocks {
				extra[s.name] -= s.left
			}
		}
	}
	for _, amount := range extra {
		if amount > 0 {
			return false
		}
	}
	return short.memoryMB <= 0 && short.diskMB <= 0 && n <= 0
}

// An auction is one call of Place.
type auction struct {
	fleet  *fleet
	batch  *batch
	policy *Policy
	census census
	search search
	result Result
	// unexplained are the refusals that have no explanation yet.
	unexplained []unexplained
}

type unexplained struct {
	refusal int
	entry   *entry
}

func (a *auction) place(e *entry) {
	s := a.shape(e)
	switch limit := a.policy.MaxStarting; {
	case s.wants == none:
		err := a.item(e).invalid()
		a.refuse(Refusal{Item: a.item(e), Error: lrp.PlacementError{Reason: lrp.NoCompatibleCells, Detail: err.Error()}, Invalid: err})
		return
	case len(a.fleet.cells) == 0:
		r := Refusal{Item: a.item(e), Error: lrp.PlacementError{Reason: lrp.CellsUnreachable}}
		if len(a.fleet.leftOut) > 0 {
			r.Explanation = a.fleet.why(r.Item, s.demand, a.offer(s), a.policy)
			r.Error.Detail = r.Explanation.String()
		}
		a.refuse(r)
		return
	case limit > 0 && a.fleet.inFlight >= limit:
		a.refuse(Refusal{Item: a.item(e), Error: lrp.PlacementError{
			Reason: lrp.TooManyStarting,
			Detail: fmt.Sprintf("%d containers are starting, the limit is %d", a.fleet.inFlight, limit),
		}})
		return
	}
	if e.kind() == LRP {
		a.census.load(&a.batch.owners[e.owner].spread)
	}
	if a.policy.own() {
		a.placeByScan(e, s)
	} else {
		a.placeByIndex(e, s)
	}
}

func (a *auction) placeByIndex(e *entry, s *shape) {
	o, d := a.offer(s), s.demand
	if o.hopeless(d) {
		a.refuseShape(e)
		return
	}
	home := a.fleet.home(a.item(e))
	chosen := a.search.pick(e.kind(), d, o, home)
	if chosen[0] == noPick {
		if !home.strict {
			o.refuse(d)
		}
		a.refuseShape(e)
		return
	}
	a.take(e, d, chosen)
	a.fleet.changed(chosen[0].cell)
}

// placeByScan also shows the policy's rules what is on the cell by now. It
// explains a refusal at once, because the rules may answer differently later.
func (a *auction) placeByScan(e *entry, s *shape) {
	item, o, d := a.item(e), a.offer(s), s.demand
	chosen := a.fleet.scan(item, d, o, &a.census, a.policy)
	if chosen[0] == noPick {
		why := a.fleet.why(item, d, o, a.policy)
		a.refuse(Refusal{Item: item, Error: why.placementError(&a.batch.wants[s.wants], why.String()), Explanation: why})
		return
	}
	a.take(e, d, chosen)
	a.fleet.cells[chosen[0].cell].show(item)
}

func (a *auction) item(e *entry) *Item { return &a.batch.items[e.item] }

func (a *auction) shape(e *entry) *shape { return &a.batch.shapes[e.shape] }

func (a *auction) offer(s *shape) *offer { return &a.batch.offers[a.batch.wants[s.wants].offer] }

// take puts the item on the first of the chosen cells.
func (a *auction) take(e *entry, d demand, chosen picks) {
	k, n := e.kind(), chosen[0].cell
	end := len(a.result.Placements)
	a.result.Placements = a.result.Placements[:end+1] // there is room for all
	p := &a.result.Placements[end]
	p.Item = a.item(e)
	a.fleet.choose(&p.Choice, k, d, chosen[0])
	if chosen[1] != noPick {
		a.fleet.choose(&p.RunnerUp, k, d, chosen[1])
	}
	a.fleet.reserve(n, k, d)
	if k == LRP {
		a.census.add(n)
	}
}

func (a *auction) refuse(r Refusal) { a.result.Refusals = append(a.result.Refusals, r) }

// refuseShape refuses an item for its shape; the explanation follows at the end
// of the batch.
func (a *auction) refuseShape(e *entry) {
	a.unexplained = append(a.unexplained, unexplained{len(a.result.Refusals), e})
	a.refuse(Refusal{Item: a.item(e)})
}

func (a *auction) explain() {
	x := newExplainer(a)
	for _, u := range a.unexplained {
		r := &a.result.Refusals[u.refusal]
		s := a.shape(u.entry)
		found := x.why(r.Item, s)
		r.Explanation, r.Error = found.why, found.why.placementError(&a.batch.wants[s.wants], found.text)
	}
}
