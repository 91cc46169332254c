// Package scoreparts adds to the reason of a placement the parts of its score
// beside those of the runner-up's. Cells keep the reason, and the event of the
// placement has it, so a placement can still be explained when the fleet has long
// changed.
package scoreparts

import (
	"context"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/diegosdk/diego/auction"
)

// mark begins the parts in a reason. The console reads what follows.
const mark = "; parts"

// Without is the text of a placement without the parts.
func Without(text string) string {
	if i := strings.LastIndex(text, mark); i >= 0 {
		return text[:i]
	}
	return text
}

// Text has every part of the scores that is not 0 for both: "; parts against
// cell-2: memory in use 0.25/0.5". It is empty if there is none, and shorter than
// 400 bytes and the runner-up's name.
func Text(p *auction.Placement) string {
	won, lost := &p.Score, &p.RunnerUp.Score
	var b strings.Builder
	b.WriteString(mark)
	if p.RunnerUp.CellID != "" {
		b.WriteString(" against ")
		b.WriteString(p.RunnerUp.CellID)
	}
	before := ": "
	for _, part := range [...]struct {
		name      string
		won, lost float64
	}{
		{"preference", won.Preference, lost.Preference},
		{"of its process in the zone", float64(won.ZoneInstances), float64(lost.ZoneInstances)},
		{"of its process on the cell", float64(won.CellInstances), float64(lost.CellInstances)},
		{"tasks on the cell", float64(won.CellTasks), float64(lost.CellTasks)},
		{"memory in use", won.Memory, lost.Memory},
		{"disk in use", won.Disk, lost.Disk},
		{"containers in use", won.Containers, lost.Containers},
		{"further resources in use", won.Extra, lost.Extra},
		{"containers that start", won.Starting, lost.Starting},
		{"bin packing", won.BinPack, lost.BinPack},
	} {
		if part.won == 0 && part.lost == 0 {
			continue
		}
		b.WriteString(before)
		b.WriteString(part.name)
		b.WriteByte(' ')
		b.WriteString(number(part.won))
		if p.RunnerUp.CellID != "" {
			b.WriteByte('/')
			b.WriteString(number(part.lost))
		}
		before = ", "
	}
	if before == ": " {
		return ""
	}
	return b.String()
}

func number(v float64) string {
	if rounded := math.Round(v*1e4) / 1e4; math.Abs(v) < 1e9 {
		return strconv.FormatFloat(rounded, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', 5, 64) // of a scorer
}

// Explain lets a runner with these options, whose Directory is set, add the parts
// to the reasons that it gives to cells.
func Explain(o *auction.RunnerOptions) {
	d := &directory{Directory: o.Directory}
	o.Directory = d
	told := o.Placed
	o.Placed = func(r auction.Result) {
		d.note(r)
		if told != nil {
			told(r)
		}
	}
}

// A directory knows the placements of the present batch until their cells get
// their work.
type directory struct {
	auction.Directory

	mu     sync.Mutex
	placed map[string][]*auction.Placement // by cell, in the order of the work
}

func (d *directory) note(r auction.Result) {
	placed := map[string][]*auction.Placement{}
	for i := range r.Placements {
		p := &r.Placements[i]
		placed[p.CellID] = append(placed[p.CellID], p)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.placed = placed
}

func (d *directory) take(cell string) []*auction.Placement {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.placed[cell]
	delete(d.placed, cell)
	return list
}

// Cells implements [auction.Directory].
func (d *directory) Cells(ctx context.Context) ([]auction.Cell, error) {
	cells, err := d.Directory.Cells(ctx)
	out := make([]auction.Cell, len(cells))
	for i, c := range cells {
		out[i] = auction.Cell{ID: c.ID, Client: client{c.Client, d}}
	}
	return out, err
}

type client struct {
	auction.CellClient
	directory *directory
}

// Perform implements [auction.CellClient].
func (c client) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	placed := c.directory.take(w.CellID)
	reasons := make([]string, 0, len(w.Reasons))
	for i, reason := range w.Reasons {
		// A call that was given up may come as late as the next batch.
		if i < len(placed) && placed[i].Item.Key == w.Items[i].Key {
			reason += Text(placed[i])
		}
		reasons = append(reasons, reason)
	}
	if len(reasons) > 0 {
		w.Reasons = reasons
	}
	return c.CellClient.Perform(ctx, w)
}
