package auction

import (
	"fmt"
	"slices"
)

// wants is what items ask of a cell besides room, and which cells offer it.
type wants struct {
	rootFS        string
	drivers, tags []string

	// misses says by class why its cells do not offer it, or "".
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

func newWants(item *Item, f *fleet) wants {
	w := wants{
		rootFS: item.RootFS, drivers: item.VolumeDrivers, tags: item.PlacementTags,
		misses: make([]CellReason, len(f.classes)),
	}
	byZone := make([][]int32, f.zones)
	for n := range f.classes {
		c := &f.classes[n]
		if w.misses[n] = c.like.offers(&w); w.misses[n] == "" {
			byZone[c.zone] = append(byZone[c.zone], int32(n))
		}
	}
	for z, classes := range byZone {
		if len(classes) > 0 {
			w.zones = append(w.zones, zoneClasses{int32(z), classes})
		}
	}
	return w
}

// hopeless reports whether n is known to fit nowhere.
func (w *wants) hopeless(n need) bool {
	return slices.ContainsFunc(w.refused, func(r need) bool { return r.within(n) })
}

// refuse remembers a need that was not hopeless until now.
func (w *wants) refuse(n need) {
	w.refused = slices.DeleteFunc(w.refused, n.within)
	if len(w.refused) < maxRefused {
		w.refused = append(w.refused, n)
	}
}

// of reports whether w is what the item asks for.
func (w *wants) of(i *Item) bool {
	return w.rootFS == i.RootFS && slices.Equal(w.drivers, i.VolumeDrivers) && slices.Equal(w.tags, i.PlacementTags)
}

func (i *Item) appendWantsKey(key []byte) []byte {
	key = appendText(key, i.RootFS)
	key = appendTexts(key, i.VolumeDrivers)
	return appendTexts(key, i.PlacementTags)
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
