package auction

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/diegosdk/diego/executor"
)

// A shape is what decides which cells can take an item, and how much it takes
// from them. Most items share theirs with many others.
type shape struct {
	demand
	// wants is none for an invalid item.
	wants int32
}

// wants are the requirements of items besides room for their demand.
type wants struct {
	rootFS        string
	drivers, tags []string
	fields        []string
	// offer is the number of the answer to it.
	offer int32
}

// An offer says which cells of the fleet fulfil some wants, and why the others
// do not. Many wants have the same offer, for example all images of a registry.
type offer struct {
	// misses says for each offering why it does not fulfil the wants, or "".
	misses []CellReason
	// zones are the zones with classes that fulfil them.
	zones []zoneClasses
	// refused are demands for which no cell had room. None of them is within
	// another. Room only shrinks, so no cell has room for a larger demand either.
	refused []demand
}

type zoneClasses struct {
	zone    int32
	classes []int32
}

// maxRefused limits the time spent on looking for a refused demand.
const maxRefused = 64

// alike reports whether two items ask for the same. If it says no, their shapes may
// still be equal, because an amount of 0 is as good as none.
func alike(a, b *Item) bool {
	return a.need() == b.need() && a.RootFS == b.RootFS &&
		slices.Equal(a.VolumeDrivers, b.VolumeDrivers) && slices.Equal(a.PlacementTags, b.PlacementTags) && slices.Equal(a.Fields, b.Fields) &&
		(len(a.Extra)+len(b.Extra) == 0 || maps.Equal(a.Extra, b.Extra))
}

// An interner numbers the shapes of items, their wants, and the offers.
type interner struct {
	batch   *batch
	fleet   *fleet
	shapes  map[shape]int32
	known   map[string]int32 // the wants
	offers  map[string]int32
	bundles map[string]*bundle
	key     []byte
	misses  []CellReason
	// last is the item before, nil if there is none, and lastShape its shape.
	last      *Item
	lastShape int32
}

func newInterner(b *batch, f *fleet) *interner {
	return &interner{
		batch: b, fleet: f,
		shapes: map[shape]int32{}, known: map[string]int32{}, offers: map[string]int32{}, bundles: map[string]*bundle{},
		misses: make([]CellReason, len(f.offerings)),
	}
}

// shape is the number of the shape of a valid item.
func (n *interner) shape(item *Item) int32 {
	if n.last == nil || !alike(n.last, item) {
		n.lastShape = n.number(shape{demand{item.need(), n.bundle(item.Extra)}, n.wants(item)})
	}
	n.last = item
	return n.lastShape
}

// invalid is the number of the shape of an invalid item, which has a place in the
// order of work.
func (n *interner) invalid(item *Item) int32 {
	return n.number(shape{demand{need: item.need()}, none})
}

func (n *interner) number(s shape) int32 {
	number, ok := n.shapes[s]
	if !ok {
		number = int32(len(n.batch.shapes))
		n.shapes[s] = number
		n.batch.shapes = append(n.batch.shapes, s)
	}
	return number
}

// wants is the number of what the item asks for besides room.
func (n *interner) wants(item *Item) int32 {
	b, w := n.batch, wants{rootFS: item.RootFS, drivers: item.VolumeDrivers, tags: item.PlacementTags, fields: item.Fields}
	n.key = appendText(n.key[:0], w.rootFS)
	for _, list := range [...][]string{w.drivers, w.tags, w.fields} {
		n.key = appendTexts(n.key, list)
	}
	number, ok := n.known[string(n.key)]
	if ok {
		return number
	}
	number = int32(len(b.wants))
	n.known[string(n.key)] = number
	n.key = n.key[:0]
	for i, cell := range n.fleet.offerings {
		n.misses[i] = cell.offers(&w)
		n.key = append(n.key, byte(n.misses[i].stage()))
	}
	if w.offer, ok = n.offers[string(n.key)]; !ok {
		w.offer = int32(len(b.offers))
		n.offers[string(n.key)] = w.offer
		b.offers = append(b.offers, offer{misses: slices.Clone(n.misses)})
	}
	b.wants = append(b.wants, w)
	return number
}

// bundle is the one of what an item takes of further resources.
func (n *interner) bundle(a executor.Amounts) *bundle {
	var wants []want
	n.key = n.key[:0]
	for _, name := range a.Names() {
		if a[name] > 0 {
			wants = append(wants, want{name, n.fleet.column(name), a[name]})
			n.key = append(strconv.AppendInt(appendText(n.key, name), a[name], 10), ' ')
		}
	}
	if wants == nil {
		return nil
	}
	b, ok := n.bundles[string(n.key)]
	if !ok {
		b = &bundle{wants}
		n.bundles[string(n.key)] = b
	}
	return b
}

// text names the part of w that a cell does not offer for the given reason.
func (w *wants) text(r CellReason) string {
	switch r {
	case OtherRootFS:
		return fmt.Sprintf("root file system %s", w.rootFS)
	case NoVolumeDriver:
		return fmt.Sprintf("volume drivers %q", w.drivers)
	case RefusesField:
		return fmt.Sprintf("fields %q", w.fields)
	}
	return fmt.Sprintf("placement tags %q", w.tags)
}

// find lists the classes of the fleet that fulfil the wants.
func (o *offer) find(f *fleet) {
	byZone := make([][]int32, f.zones)
	for n := range f.classes {
		if c := &f.classes[n]; o.misses[c.offering] == "" {
			byZone[c.zone] = append(byZone[c.zone], int32(n))
		}
	}
	for z, classes := range byZone {
		if len(classes) > 0 {
			o.zones = append(o.zones, zoneClasses{int32(z), classes})
		}
	}
}

// hopeless reports whether d is known to fit nowhere.
func (o *offer) hopeless(d demand) bool {
	return slices.ContainsFunc(o.refused, func(r demand) bool { return r.within(d) })
}

// refuse remembers a demand that was not hopeless until now.
func (o *offer) refuse(d demand) {
	o.refused = slices.DeleteFunc(o.refused, d.within)
	if len(o.refused) < maxRefused {
		o.refused = append(o.refused, d)
	}
}
