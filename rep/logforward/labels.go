package logforward

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/rep"
)

const (
	// maxLabelBytes bounds each label, and maxTagBytes the names and texts of all
	// tags: each line is sent with them, and definitions may have megabytes.
	maxLabelBytes = 1 << 10
	maxTagBytes   = 4 << 10
	// maxKnownBytes bounds what is remembered of containers that have written
	// lately.
	maxKnownBytes = 8 << 20
)

// labels are those of one source of a container, without the stream. Nothing
// changes them.
type labels struct {
	rep.LogLabels
	bytes int64
}

// A labeller remembers the labels of containers that have written lately. Its
// methods may be called concurrently.
type labeller struct {
	mu    sync.Mutex
	known map[source]*labels
	bytes int64
}

// A source is what writes lines: an action of a container.
type source struct{ guid, name string }

// of returns the labels of a line.
func (b *labeller) of(l *manager.LogLine) *labels {
	key := source{l.GUID, l.Source[:min(len(l.Source), maxLabelBytes)]}
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.known[key]
	if found == nil {
		found = bounded(rep.LabelsOf(l.GUID, l.Owner.LogGUID, l.Owner.MetricsGUID, l.Owner.Tags), key.name)
		if b.bytes += found.bytes + lineCost; b.bytes > maxKnownBytes || b.known == nil {
			// Nobody says which containers are gone.
			b.known, b.bytes = make(map[source]*labels), found.bytes+lineCost
		}
		b.known[source{l.GUID, found.Source}] = found
	}
	return found
}

// bounded returns labels whose texts are at most so long. Of tags, the first ones
// by name stay. They keep nothing else of the container in memory.
func bounded(l rep.LogLabels, source string) *labels {
	l.Source = source
	b := &labels{LogLabels: l}
	for _, label := range []*string{&b.LogGUID, &b.Domain, &b.InstanceGUID, &b.Source} {
		*label = strings.Clone((*label)[:min(len(*label), maxLabelBytes)])
		b.bytes += int64(len(*label))
	}
	size := 0
	b.Tags = nil
	for _, name := range slices.Sorted(maps.Keys(l.Tags)) {
		if size += len(name) + len(l.Tags[name]); size > maxTagBytes {
			break
		}
		if b.Tags == nil {
			b.Tags = make(map[string]string)
		}
		b.Tags[strings.Clone(name)] = strings.Clone(l.Tags[name])
		b.bytes += int64(len(name) + len(l.Tags[name]))
	}
	return b
}
