package auction

import (
	"fmt"
	"slices"
)

// wants is what items ask of a cell besides room.
type wants struct {
	rootFS        string
	drivers, tags []string
	// offer is the number of the answer to it.
	offer int32
}

// An offer is how the fleet answers what items want: which of its cells do and
// why the others do not. Many wants have the same answer, such as all images of a
// registry.
type offer struct {
	// misses says by offering why it will not do, or "".
	misses []CellReason
	// zones are the zones with classes that do.
	zones []zoneClasses
	// refused are needs for which no cell had room. None of them is within
	// another. Room only shrinks, so neither has any cell for a larger need.
	refused []need
}

type zoneClasses struct {
	zone    int32
	classes []int32
}

// maxRefused bounds the time that is spent on looking for a refused need.
const maxRefused = 64

func wantsOf(i *Item) wants {
	return wants{rootFS: i.RootFS, drivers: i.VolumeDrivers, tags: i.PlacementTags}
}

// of reports whether w is what the item asks for.
func (w *wants) of(i *Item) bool {
	return w.rootFS == i.RootFS && slices.Equal(w.drivers, i.VolumeDrivers) && slices.Equal(w.tags, i.PlacementTags)
}

func (w *wants) appendKey(key []byte) []byte {
	key = appendText(key, w.rootFS)
	key = appendTexts(key, w.drivers)
	return appendTexts(key, w.tags)
}

// An interner gives numbers to what items want, and to the answers.
type interner struct {
	batch         *batch
	fleet         *fleet
	known, offers map[string]int32
	key           []byte
	misses        []CellReason
}

func newInterner(b *batch, f *fleet) *interner {
	return &interner{
		batch: b, fleet: f, known: map[string]int32{}, offers: map[string]int32{},
		misses: make([]CellReason, len(f.offerings)),
	}
}

func (n *interner) wants(item *Item) int32 {
	b, w := n.batch, wantsOf(item)
	n.key = w.appendKey(n.key[:0])
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

// text names the part of w that a cell does not offer for the given reason.
func (w *wants) text(r CellReason) string {
	switch r {
	case OtherRootFS:
		return fmt.Sprintf("root file system %s", w.rootFS)
	case NoVolumeDriver:
		return fmt.Sprintf("volume drivers %q", w.drivers)
	}
	return fmt.Sprintf("placement tags %q", w.tags)
}

// find lists the classes of the fleet that offer it.
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

// hopeless reports whether n is known to fit nowhere.
func (o *offer) hopeless(n need) bool {
	return slices.ContainsFunc(o.refused, func(r need) bool { return r.within(n) })
}

// refuse remembers a need that was not hopeless until now.
func (o *offer) refuse(n need) {
	o.refused = slices.DeleteFunc(o.refused, n.within)
	if len(o.refused) < maxRefused {
		o.refused = append(o.refused, n)
	}
}
