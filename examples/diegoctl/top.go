package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep"
)

func topCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "top [GUID]", Short: "Show what instances and tasks use", RunE: p.asks(top), ValidArgsFunction: cli.Completes(p.allGUIDs(), nil),
		Long: `Show what instances and tasks use, by the last measurement of their cells. CPU is
100% for each busy processor. Network traffic is shown for containers with a
network of their own.`,
		Example: "  diegoctl top --sort memory --watch\n  diegoctl top web -o json",
	}, p.domainFlags(), p.cellFlags(), []cli.Flag{
		{Name: "sort", Kind: cli.OneOf("BY", "cpu", "memory", "disk", "pids", "received", "sent", "name"), Default: "cpu", Help: "show first what uses most of this"},
	}, watchFlags)
}

// A usageDoc is what a container uses, for programs.
type usageDoc struct {
	CellID string `json:"cell_id"`
	rep.ContainerUsage
}

func (u *usageDoc) name() string {
	if u.Index != nil {
		return u.work() + "/" + strconv.Itoa(*u.Index)
	}
	return u.work()
}

// work names a process, a task, or a container that is for neither.
func (u *usageDoc) work() string {
	if u.TaskGUID != "" {
		return "task " + u.TaskGUID
	}
	return cmp.Or(u.ProcessGUID, u.ContainerGUID)
}

func (u *usageDoc) index() int {
	if u.Index == nil {
		return 0
	}
	return *u.Index
}

// usages asks cells what their containers use. notes say which did not answer.
func (c *call) usages(r *remote, cells []bbs.CellPresence) (list []usageDoc, notes []string, err error) {
	answers := askCells(c.ctx, r, cells, func(ctx context.Context, cell rep.API) ([]rep.ContainerUsage, error) {
		if m, can := cell.(rep.Meter); can {
			return m.Usages(ctx)
		}
		return nil, errors.New("it does not say what its containers use")
	})
	for i, p := range cells {
		if err := answers[i].err; err != nil {
			if errors.Is(err, httpapi.ErrForbidden) {
				return nil, nil, err
			}
			notes = append(notes, fmt.Sprintf("cell %s: %v", p.CellID, err))
		}
		for _, u := range answers[i].value {
			list = append(list, usageDoc{p.CellID, u})
		}
	}
	return list, notes, nil
}

var usageHeading = []string{"CPU", "MEMORY", "DISK", "PIDS", "RECEIVED", "SENT"}

// usageCells are the columns of usageHeading. u is nil if nothing was measured.
func usageCells(u *rep.ContainerUsage) []show.Cell {
	texts := []string{"-", "-", "-", "-", "-", "-"}
	if u != nil {
		if u.Cores >= 0 {
			texts[0] = fmt.Sprintf("%.1f%%", u.Cores*100)
		}
		texts[1], texts[2] = ofLimit(u.MemoryBytes, u.MemoryLimitBytes), ofLimit(u.DiskBytes, u.DiskLimitBytes)
		texts[3] = ofCount(u.PIDs, u.MaxPIDs)
		texts[4], texts[5] = perSecond(u.ReceivedPerSecond), perSecond(u.SentPerSecond)
	}
	cells := make([]show.Cell, len(texts))
	for i, text := range texts {
		cells[i] = show.Text(text)
	}
	return cells
}

func top(c *call, r *remote) error {
	cells, err := r.bbs.Cells(c.ctx)
	if err != nil {
		return err
	}
	wanted := c.list("cell")
	cells = slices.DeleteFunc(cells, func(p bbs.CellPresence) bool { return len(wanted) > 0 && !slices.Contains(wanted, p.CellID) })
	list, notes, err := c.usages(r, cells)
	if err != nil {
		return err
	}
	v := &show.View{Heading: append([]string{"NAME", "CELL"}, usageHeading...), Empty: "nothing was measured", Notes: notes}
	guid, domains := c.arg(0), c.list("domain")
	list = slices.DeleteFunc(list, func(u usageDoc) bool {
		return guid != "" && guid != u.ProcessGUID && guid != u.TaskGUID || len(domains) > 0 && !slices.Contains(domains, u.Domain)
	})
	sortUsages(list, c.text("sort"))
	for i := range list {
		u := &list[i]
		v.Add(u, append([]show.Cell{show.Text(u.name()), show.Text(u.CellID)}, usageCells(&u.ContainerUsage)...)...)
	}
	return c.Show(v)
}

func sortUsages(list []usageDoc, by string) {
	slices.SortStableFunc(list, func(a, b usageDoc) int {
		most := 0
		switch by {
		case "cpu":
			most = cmp.Compare(b.Cores, a.Cores)
		case "memory":
			most = cmp.Compare(b.MemoryBytes, a.MemoryBytes)
		case "disk":
			most = cmp.Compare(b.DiskBytes, a.DiskBytes)
		case "pids":
			most = cmp.Compare(b.PIDs, a.PIDs)
		case "received":
			most = cmp.Compare(b.ReceivedPerSecond, a.ReceivedPerSecond)
		case "sent":
			most = cmp.Compare(b.SentPerSecond, a.SentPerSecond)
		}
		return cmp.Or(most, strings.Compare(a.work(), b.work()), cmp.Compare(a.index(), b.index()))
	})
}

// ofLimit is a use of mebibytes of its limit.
func ofLimit(used, limit int64) string {
	switch {
	case used < 0:
		return "-"
	case limit == 0:
		return fmt.Sprintf("%d MiB", (used+1<<20-1)>>20)
	}
	return fmt.Sprintf("%d/%d MiB", (used+1<<20-1)>>20, limit>>20)
}

func ofCount(used, limit int64) string {
	switch {
	case used < 0:
		return "-"
	case limit == 0:
		return strconv.FormatInt(used, 10)
	}
	return fmt.Sprintf("%d/%d", used, limit)
}

// perSecond is a rate of bytes.
func perSecond(bytes float64) string {
	switch {
	case bytes < 0:
		return "-"
	case bytes < 1<<10:
		return fmt.Sprintf("%.0f B/s", bytes)
	case bytes < 1<<20:
		return fmt.Sprintf("%.1f KiB/s", bytes/(1<<10))
	}
	return fmt.Sprintf("%.1f MiB/s", bytes/(1<<20))
}
