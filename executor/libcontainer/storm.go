//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"math"
	"slices"
	"time"
)

// Linux looks for a process to kill in one container at a time, for the whole host. All
// that need memory beyond their container's limit wait for their turn meanwhile, and so
// may programs that read the command line of one that waits, as ps does. A container that
// forks without end at its limit holds up its neighbours in this way, and four do so for
// half a minute and more. The Backend ends those that keep the kernel at it.

const (
	// stormPause is the time between two counts of what the kernel has killed.
	stormPause = 5 * time.Second
	// stormKills is how many processes die in a storm between two counts. A storm of one
	// container can kill a hundred; many at a time kill fewer.
	stormKills = 15
)

// A storm goes on if it raged at the count before.
type storm struct{ raging bool }

// count is told how many processes the kernel has killed in each container since the
// count before. It returns how many make a container end: at least half of what the worst
// has lost, and never a single one. A burst, which is in one count, makes none end.
func (s *storm) count(kills []int64) (least int64) {
	var all int64
	for _, n := range kills {
		all += n
	}
	before := s.raging
	s.raging = all >= stormKills
	if !before || !s.raging {
		return math.MaxInt64
	}
	return max(2, (slices.Max(kills)+1)/2)
}

// endStorms counts, and ends the containers that have lost too many processes as if they
// were out of memory as a whole. Only one goroutine calls it.
func (b *Backend) endStorms(s *storm) {
	made := b.made()
	kills := make([]int64, len(made))
	for i, c := range made {
		before := c.oomKills
		c.oomKills = max(before, c.cgroup.OOMKills())
		kills[i] = c.oomKills - before
	}
	least := s.count(kills)
	for i, c := range made {
		if kills[i] >= least {
			c.endForMemory()
		}
	}
}
