package auction

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/diegosdk/diego/executor"
)

// wants are the requirements of items besides room for their need.
type wants struct {
	rootFS        string
	drivers, tags []string
	fields        []string
	amounts       executor.Amounts
	// extra is the same as amounts.
	extra *bundle
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

func plainWants(i *Item) wants {
	return wants{rootFS: i.RootFS, drivers: i.VolumeDrivers, tags: i.PlacementTags, fields: i.Fields}
}

// of reports whether w are the item's wants.
func (w *wants) of(i *Item) bool {
	return w.rootFS == i.RootFS && slices.Equal(w.drivers, i.VolumeDrivers) && slices.Equal(w.tags, i.PlacementTags) && slices.Equal(w.fields, i.Fields) &&
		(len(w.amounts)+len(i.Extra) == 0 || maps.Equal(w.amounts, i.Extra))
}

func (w *wants) appendKey(key []byte) []byte {
	key = appendText(key, w.rootFS)
	key = appendTexts(key, w.drivers)
	key = appendTexts(key, w.tags)
	return appendTexts(key, w.fields)
}

// appendAmounts leaves out amounts of 0, which are as good as none.
func appendAmounts(key []byte, a executor.Amounts) []byte {
	for _, name := range a.Names() {
		if a[name] != 0 {
			key = append(strconv.AppendInt(appendText(key, name), a[name], 10), ' ')
		}
	}
	return key
}

// An interner numbers the wants of items, and the offers.
type interner struct {
	batch         *batch
	fleet         *fleet
	known, offers map[string]int32
	bundles       map[string]*bundle
	key           []byte
	misses        []CellReason
}

func newInterner(b *batch, f *fleet) *interner {
	return &interner{
		batch: b, fleet: f, known: map[string]int32{}, offers: map[string]int32{},
		misses: make([]CellReason, len(f.offerings)),
	}
}

// wants is the number of what the item asks for.
func (n *interner) wants(item *Item) int32 {
	number := n.plain(item)
	if len(item.Extra) == 0 {
		return number
	}
	w := n.batch.wants[number]
	w.amounts = item.Extra
	n.key = appendAmounts(w.appendKey(n.key[:0]), w.amounts)
	number, ok := n.known[string(n.key)]
	if !ok {
		w.extra = n.bundle(w.amounts)
		number = int32(len(n.batch.wants))
		n.known[string(n.key)] = number
		n.batch.wants = append(n.batch.wants, w)
	}
	return number
}

// plain is the number of what the item asks for besides further resources.
func (n *interner) plain(item *Item) int32 {
	b, w := n.batch, plainWants(item)
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

// bundle is the one of what an item takes of further resources.
func (n *interner) bundle(a executor.Amounts) *bundle {
	key := string(appendAmounts(nil, a))
	if b, ok := n.bundles[key]; ok {
		return b
	}
	var b *bundle
	for _, name := range a.Names() {
		if a[name] > 0 {
			if b == nil {
				b = &bundle{}
			}
			b.wants = append(b.wants, want{name, n.fleet.column(name), a[name]})
		}
	}
	if n.bundles == nil {
		n.bundles = map[string]*bundle{}
	}
	n.bundles[key] = b
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
