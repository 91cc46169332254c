package auction_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// oracle places work in the plainest way: for every item it looks at every
// cell and works everything out anew from what is on it. It shares nothing with
// Place but its types.
func oracle(cells []auction.CellState, work []auction.Item, p auction.Policy) auction.Result {
	first := oracleInOrder(cells, p, oracleOrder(work))
	domains, turnedAway := map[string]bool{}, false
	for _, i := range work {
		domains[i.Domain] = true
	}
	for _, r := range first.Refusals {
		if r.Error.Reason == lrp.InsufficientResources || r.Error.Reason == lrp.TooManyStarting {
			turnedAway = true
		}
	}
	if len(domains) > 1 && turnedAway {
		second := oracleInOrder(cells, p, oracleTurns(oracleOrder(work)))
		for _, placed := range second.Placements {
			for _, refused := range first.Refusals {
				if placed.Item.Key == refused.Item.Key {
					return second
				}
			}
		}
	}
	return first
}

// oracleInOrder places the work evenly or packed.
func oracleInOrder(cells []auction.CellState, p auction.Policy, order []*auction.Item) auction.Result {
	even := oracleOnce(cells, order, p, false)
	var short, shortDisk, shortContainers int64
	extra := executor.Amounts{}
	for _, r := range even.result.Refusals {
		if r.Error.Reason == lrp.InsufficientResources {
			short, shortDisk, shortContainers = short+r.Item.MemoryMB, shortDisk+r.Item.DiskMB, shortContainers+1
			for name, n := range r.Item.Extra {
				extra[name] += n
			}
		}
	}
	var room, roomDisk, roomContainers int64
	for _, c := range even.cells {
		if c.out == "" {
			room, roomDisk, roomContainers = room+c.state.Remaining.MemoryMB, roomDisk+c.state.Remaining.DiskMB, roomContainers+c.state.Remaining.Containers
			if c.state.Total.Containers == 0 {
				roomContainers += shortContainers
			}
			for name, n := range c.state.Remaining.Extra {
				extra[name] -= n
			}
		}
	}
	for _, n := range extra {
		if n > 0 {
			return even.result
		}
	}
	if shortContainers > 0 && short <= room && shortDisk <= roomDisk && shortContainers <= roomContainers {
		packed := oracleOnce(cells, order, p, true)
		if len(packed.result.Refusals) < len(even.result.Refusals) {
			packed.result.Packed = true
			return packed.result
		}
	}
	return even.result
}

func oracleOnce(cells []auction.CellState, order []*auction.Item, p auction.Policy, packed bool) *oracleRun {
	own := p.Scorer != nil || len(p.Filters) > 0
	if zones := p.PreferredZones; len(zones) > 0 {
		p.Filters = append(slices.Clone(p.Filters), func(item *auction.Item, cell *auction.CellState) auction.CellReason {
			if item.Index > 1 && cell.Zone != zones.Zone(item.GUID, item.Index) {
				return "outside the preferred zone"
			}
			return ""
		})
		if p.Scorer == nil {
			p.Scorer = func(item *auction.Item, cell *auction.CellState, _ auction.Score) float64 {
				if item.Kind == auction.LRP && cell.Zone != zones.Zone(item.GUID, item.Index) {
					return 1
				}
				return 0
			}
		}
	}
	o := &oracleRun{packed: packed, policy: p, result: auction.Result{Placements: []auction.Placement{}}, own: own}
	for _, c := range cells {
		o.cells = append(o.cells, &oracleCell{state: c})
	}
	sort.Slice(o.cells, func(i, j int) bool { return o.cells[i].state.ID < o.cells[j].state.ID })
	for _, c := range o.cells {
		c.state.LRPs = slices.Clone(c.state.LRPs)
		c.state.Tasks = slices.Clone(c.state.Tasks)
		o.judge(c)
	}
	for _, item := range order {
		o.place(item)
	}
	for _, late := range o.late {
		r := &o.result.Refusals[late]
		r.Error, r.Explanation = o.explain(r.Item)
	}
	return o
}

type oracleRun struct {
	cells  []*oracleCell
	policy auction.Policy
	own    bool
	packed bool
	result auction.Result
	late   []int
}

type oracleCell struct {
	state auction.CellState
	out   auction.CellReason
}

func (o *oracleRun) judge(c *oracleCell) {
	var v executor.Validator
	c.state.Validate(&v)
	for _, other := range o.cells {
		if other != c && other.state.ID == c.state.ID {
			v = executor.Validator{}
			v.Check(false, "cell_id", c.state.ID, "the id of one cell only")
		}
	}
	known := slices.ContainsFunc(o.result.InvalidCells, func(i auction.InvalidCell) bool { return i.CellID == c.state.ID })
	switch {
	case known:
		c.out = "invalid"
	case v.Err() != nil:
		c.out = "invalid"
		o.result.InvalidCells = append(o.result.InvalidCells, auction.InvalidCell{CellID: c.state.ID, Err: v.Err()})
	case c.state.Evacuating:
		c.out = "evacuating"
	case c.state.Cordoned:
		c.out = "cordoned"
	case c.state.Unhealthy:
		c.out = "unhealthy"
	}
}

func itemError(i *auction.Item) error {
	var v executor.Validator
	i.Validate(&v)
	return v.Err()
}

// oracleGroup is the item's group: index 0, tasks, index 1, index 2 …
func oracleGroup(i *auction.Item) int64 {
	if i.Kind != auction.LRP {
		return 1
	}
	if i.Index == 0 {
		return 0
	}
	return int64(i.Index) + 1
}

// oracleTurns deals out each group of a list in the specification's order: turn by
// turn it takes the first item that each domain has left, from the domain with the
// shortest list first.
func oracleTurns(order []*auction.Item) []*auction.Item {
	var list []*auction.Item
	for len(order) > 0 {
		group, left, n := oracleGroup(order[0]), map[string][]*auction.Item{}, 0
		for n < len(order) && oracleGroup(order[n]) == group {
			left[order[n].Domain] = append(left[order[n].Domain], order[n])
			n++
		}
		place, asks := map[*auction.Item]int{}, map[string]int{}
		for i, item := range order[:n] {
			place[item] = i
		}
		for domain := range left {
			asks[domain] = len(left[domain])
		}
		for len(left) > 0 {
			var turn []*auction.Item
			for domain, items := range left {
				turn = append(turn, items[0])
				if left[domain] = items[1:]; len(items) == 1 {
					delete(left, domain)
				}
			}
			sort.Slice(turn, func(x, y int) bool {
				a, b := turn[x], turn[y]
				if asks[a.Domain] != asks[b.Domain] {
					return asks[a.Domain] < asks[b.Domain]
				}
				return place[a] < place[b]
			})
			list = append(list, turn...)
		}
		order = order[n:]
	}
	return list
}

func oracleOrder(work []auction.Item) []*auction.Item {
	// Of duplicates the one is kept that is valid, later, larger.
	var names []string
	for _, i := range work {
		names = append(names, i.Extra.Names()...)
	}
	slices.Sort(names)
	names = slices.Compact(names)
	content := func(i *auction.Item) string {
		var extra []string
		for _, name := range names {
			extra = append(extra, fmt.Sprintf("%020d", uint64(math.MaxInt64-i.Extra[name])))
		}
		return fmt.Sprintf("%v %020d %020d %020d %020d %020d %v %02d %s\x00%s\x00%s\x00%s\x00%020d", itemError(i) != nil,
			math.MaxInt64-i.Attempt.Epoch, math.MaxInt64-i.Attempt.Rejections,
			uint64(math.MaxInt64-i.MemoryMB), uint64(math.MaxInt64-i.DiskMB), uint64(math.MaxInt64-i.MaxPIDs),
			extra, len(i.Extra), i.RootFS, strings.Join(i.VolumeDrivers, "\x01"), strings.Join(i.PlacementTags, "\x01"), strings.Join(i.Fields, "\x01"), i.QueuedAt.UnixNano())
	}
	best := map[auction.Key]*auction.Item{}
	for n := range work {
		i := &work[n]
		if old := best[i.Key]; old == nil || content(i) < content(old) {
			best[i.Key] = i
		}
	}
	var list []*auction.Item
	for _, i := range best {
		list = append(list, i)
	}
	extra := func(a, b *auction.Item) int {
		for _, name := range names {
			if a, b := amountOf(a, name), amountOf(b, name); a != b {
				return cmp.Compare(b, a)
			}
		}
		return 0
	}
	sort.Slice(list, func(x, y int) bool {
		a, b := list[x], list[y]
		for _, c := range []int{
			cmp.Compare(oracleGroup(a), oracleGroup(b)), cmp.Compare(b.MemoryMB, a.MemoryMB), extra(a, b), strings.Compare(a.GUID, b.GUID),
			cmp.Compare(min(a.Kind, 1), min(b.Kind, 1)), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Index, b.Index),
			strings.Compare(a.DefinitionID, b.DefinitionID), strings.Compare(a.Domain, b.Domain),
		} {
			if c != 0 {
				return c < 0
			}
		}
		return false
	})
	return list
}

// amountOf is what the item takes of a further resource; an invalid one takes
// nothing.
func amountOf(i *auction.Item, name string) int64 {
	if itemError(i) != nil {
		return 0
	}
	return i.Extra[name]
}

func (o *oracleRun) refuse(r auction.Refusal) { o.result.Refusals = append(o.result.Refusals, r) }

func (o *oracleRun) place(item *auction.Item) {
	if err := itemError(item); err != nil {
		o.refuse(auction.Refusal{Item: item, Invalid: err, Error: lrp.PlacementError{Reason: lrp.NoCompatibleCells, Detail: err.Error()}})
		return
	}
	if len(o.cells) == 0 {
		o.refuse(auction.Refusal{Item: item, Error: lrp.PlacementError{Reason: lrp.CellsUnreachable}})
		return
	}
	starting := 0
	for _, c := range o.cells {
		if c.out == "" {
			starting += c.state.StartingContainers
		}
	}
	if o.policy.MaxStarting > 0 && starting >= o.policy.MaxStarting {
		o.refuse(auction.Refusal{Item: item, Error: lrp.PlacementError{
			Reason: lrp.TooManyStarting,
			Detail: fmt.Sprintf("%d containers are starting, the limit is %d", starting, o.policy.MaxStarting),
		}})
		return
	}
	type candidate struct {
		cell  *oracleCell
		score auction.Score
		exact int64
	}
	var list []candidate
	for _, c := range o.cells {
		if o.compatible(c, item) == "" && len(o.lacking(c, item)) == 0 {
			s, exact := o.score(c, item)
			if o.policy.Scorer != nil {
				if s.Preference = o.policy.Scorer(item, &c.state, s); s.Preference != s.Preference {
					s.Preference = math.Inf(1)
				}
			}
			list = append(list, candidate{c, s, exact})
		}
	}
	if len(list) == 0 {
		o.refuse(auction.Refusal{Item: item})
		if n := len(o.result.Refusals) - 1; o.own {
			r := &o.result.Refusals[n]
			r.Error, r.Explanation = o.explain(item)
		} else {
			o.late = append(o.late, n)
		}
		return
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		switch {
		case a.score.Preference != b.score.Preference:
			return a.score.Preference < b.score.Preference
		case a.score.ZoneInstances != b.score.ZoneInstances:
			return a.score.ZoneInstances < b.score.ZoneInstances
		case a.score.CellInstances != b.score.CellInstances:
			return a.score.CellInstances < b.score.CellInstances
		case a.score.CellTasks != b.score.CellTasks:
			return a.score.CellTasks < b.score.CellTasks
		case a.exact != b.exact:
			return a.exact < b.exact
		}
		return a.cell.state.ID < b.cell.state.ID
	})
	placement := auction.Placement{Item: item, Choice: auction.Choice{CellID: list[0].cell.state.ID, Score: list[0].score}}
	if len(list) > 1 {
		placement.RunnerUp = auction.Choice{CellID: list[1].cell.state.ID, Score: list[1].score}
	}
	o.result.Placements = append(o.result.Placements, placement)
	state := &list[0].cell.state
	state.Remaining.MemoryMB -= item.MemoryMB
	state.Remaining.DiskMB -= item.DiskMB
	if state.Total.Containers > 0 {
		state.Remaining.Containers--
	}
	state.Remaining.Extra = maps.Clone(state.Remaining.Extra)
	for name, n := range item.Extra {
		if n > 0 {
			state.Remaining.Extra[name] -= n
		}
	}
	if state.Total.PIDs > 0 {
		state.Remaining.PIDs -= item.MaxPIDs
	}
	state.StartingContainers++
	if item.Kind == auction.LRP {
		state.LRPs = append(state.LRPs, item.Key.LRP())
	} else {
		state.Tasks = append(state.Tasks, item.GUID)
	}
}

func (o *oracleRun) compatible(c *oracleCell, item *auction.Item) auction.CellReason {
	if c.out != "" {
		return c.out
	}
	if item.RootFS != "" && !oracleRootFS(c.state.RootFSProviders, item.RootFS) {
		return "without the root file system"
	}
	for _, d := range item.VolumeDrivers {
		if !slices.Contains(c.state.VolumeDrivers, d) {
			return "without the volume drivers"
		}
	}
	required, desired := map[string]bool{}, map[string]bool{}
	allowed := map[string]bool{}
	for _, t := range c.state.PlacementTags {
		required[t], allowed[t] = true, true
	}
	for _, t := range c.state.OptionalPlacementTags {
		allowed[t] = true
	}
	for _, t := range item.PlacementTags {
		desired[t] = true
		if !allowed[t] {
			return "with other placement tags"
		}
	}
	for t := range required {
		if !desired[t] {
			return "with other placement tags"
		}
	}
	for _, field := range item.Fields {
		if slices.Contains(c.state.RefusedFields, field) {
			return "refusing fields of the definition"
		}
	}
	for _, f := range o.policy.Filters {
		if r := f(item, &c.state); r != "" {
			return r
		}
	}
	return ""
}

func oracleRootFS(providers []string, rootFS string) bool {
	for _, p := range providers {
		bare, _, _ := strings.Cut(rootFS, "?")
		if p == bare || !strings.Contains(p, ":") && strings.HasPrefix(strings.ToLower(rootFS), p+":") {
			return true
		}
	}
	return false
}

func (o *oracleRun) lacking(c *oracleCell, item *auction.Item) map[auction.CellReason]int64 {
	lack := map[auction.CellReason]int64{}
	r := c.state.Remaining
	if item.MemoryMB > r.MemoryMB {
		lack["short of memory"] = item.MemoryMB - r.MemoryMB
	}
	if item.DiskMB > r.DiskMB {
		lack["short of disk"] = item.DiskMB - r.DiskMB
	}
	if c.state.Total.Containers > 0 && r.Containers == 0 {
		lack["short of containers"] = 1
	}
	if c.state.Total.PIDs > 0 && item.MaxPIDs > r.PIDs {
		lack["short of PIDs"] = item.MaxPIDs - r.PIDs
	}
	for name, n := range item.Extra {
		if n > r.Extra[name] {
			lack[auction.CellReason("short of "+name)] = n - r.Extra[name]
		}
	}
	return lack
}

func (o *oracleRun) score(c *oracleCell, item *auction.Item) (auction.Score, int64) {
	t, r := c.state.Total, c.state.Remaining
	weight := o.policy.StartingContainerWeight
	if weight == 0 {
		weight = 0.25
	}
	if weight < 0 {
		weight = 0
	}
	var s auction.Score
	exact := int64(math.Round(weight*3*(1<<40))) * int64(c.state.StartingContainers)
	s.Starting = weight * float64(c.state.StartingContainers)
	var inUse int64
	part := func(used, added, total int64) float64 {
		if total == 0 {
			return 0
		}
		inUse += used * ((1 << 40) / total)
		exact += added * ((1 << 40) / total)
		return float64(used+added) / float64(total)
	}
	s.Memory = part(t.MemoryMB-r.MemoryMB, item.MemoryMB, t.MemoryMB)
	s.Disk = part(t.DiskMB-r.DiskMB, item.DiskMB, t.DiskMB)
	s.Containers = part(t.Containers-r.Containers, 1, t.Containers)
	for _, name := range t.Extra.Names() {
		s.Extra += part(t.Extra[name]-r.Extra[name], item.Extra[name], t.Extra[name])
	}
	// When packed, a step counts in full and what is in use of the next one counts
	// the other way round.
	if step := int64(1 << 40 / 2); o.packed {
		inUse = inUse/step*step + step - 1 - inUse%step
	}
	exact += inUse
	if item.Kind == auction.Task {
		s.CellTasks = len(c.state.Tasks)
		return s, exact
	}
	rank := 0
	for _, other := range o.cells {
		if other.out == "" && other.state.Zone == c.state.Zone && (other.state.Index < c.state.Index ||
			other.state.Index == c.state.Index && other.state.ID < c.state.ID) {
			rank++
		}
	}
	exact += int64(rank) * int64(math.Round(o.policy.BinPackWeight*3*(1<<40)))
	s.BinPack = float64(rank) * o.policy.BinPackWeight
	for _, other := range o.cells {
		if other.out != "" && other.out != "unhealthy" && other.out != "cordoned" {
			continue
		}
		for _, key := range other.state.LRPs {
			if key.ProcessGUID == item.GUID && other.state.Zone == c.state.Zone {
				s.ZoneInstances++
				if other == c {
					s.CellInstances++
				}
			}
		}
	}
	return s, exact
}

func (o *oracleRun) explain(item *auction.Item) (lrp.PlacementError, *auction.Explanation) {
	e := &auction.Explanation{Cells: len(o.cells)}
	counts := map[auction.CellReason]int{}
	nearest := int64(math.MaxInt64)
	for _, c := range o.cells {
		if reason := o.compatible(c, item); reason != "" {
			counts[reason]++
			continue
		}
		lack := o.lacking(c, item)
		for reason := range lack {
			counts[reason]++
		}
		var distance int64
		needs := map[auction.CellReason]int64{
			"short of memory": item.MemoryMB, "short of disk": item.DiskMB, "short of containers": 1, "short of PIDs": item.MaxPIDs,
		}
		var extra executor.Amounts
		for name, n := range item.Extra {
			reason := auction.CellReason("short of " + name)
			needs[reason] = n
			if lack[reason] > 0 && extra == nil {
				extra = executor.Amounts{}
			}
			if lack[reason] > 0 {
				extra[name] = lack[reason]
			}
		}
		for reason, need := range needs {
			if lack[reason] > 0 {
				distance += lack[reason] * (1 << 20) / need
			}
		}
		if distance < nearest {
			nearest = distance
			e.Nearest = &auction.NearMiss{CellID: c.state.ID, Lacks: auction.Capacity{
				MemoryMB: lack["short of memory"], DiskMB: lack["short of disk"],
				Containers: lack["short of containers"], PIDs: lack["short of PIDs"], Extra: extra,
			}}
		}
	}
	order := []auction.CellReason{
		"invalid", "evacuating", "cordoned", "unhealthy",
		"without the root file system", "without the volume drivers", "with other placement tags",
		"refusing fields of the definition",
	}
	var own []auction.CellReason
	last := []auction.CellReason{"short of memory", "short of disk", "short of containers", "short of PIDs"}
	for _, name := range item.Extra.Names() {
		last = append(last, auction.CellReason("short of "+name))
	}
	for reason := range counts {
		if !slices.Contains(order, reason) && !slices.Contains(last, reason) {
			own = append(own, reason)
		}
	}
	slices.Sort(own)
	for _, reason := range append(append(order, own...), last...) {
		if counts[reason] > 0 {
			e.Reasons = append(e.Reasons, auction.ReasonCount{Reason: reason, Cells: counts[reason]})
		}
	}
	err := lrp.PlacementError{Reason: lrp.NoCompatibleCells, Detail: e.String()}
	if e.Nearest != nil {
		err.Reason = lrp.InsufficientResources
		return err, e
	}
	switch e.Reasons[len(e.Reasons)-1].Reason {
	case "without the root file system":
		err.Detail = "root file system " + item.RootFS + " wanted: " + err.Detail
	case "without the volume drivers":
		err.Detail = fmt.Sprintf("volume drivers %q wanted: %s", item.VolumeDrivers, err.Detail)
	case "with other placement tags":
		err.Detail = fmt.Sprintf("placement tags %q wanted: %s", item.PlacementTags, err.Detail)
	case "refusing fields of the definition":
		err.Detail = fmt.Sprintf("fields %q wanted: %s", item.Fields, err.Detail)
	}
	return err, e
}
