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

// name is that of the work.
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

func top(c *call, r *remote) error {
	cells, err := r.bbs.Cells(c.ctx)
	if err != nil {
		return err
	}
	wanted := c.list("cell")
	cells = slices.DeleteFunc(cells, func(p bbs.CellPresence) bool { return len(wanted) > 0 && !slices.Contains(wanted, p.CellID) })
	answers := askCells(c, r, cells, func(ctx context.Context, cell rep.API) ([]rep.ContainerUsage, error) {
		if m, can := cell.(rep.Meter); can {
			return m.Usages(ctx)
		}
		return nil, errors.New("it does not say what its containers use")
	})
	var list []usageDoc
	v := &show.View{Heading: []string{"NAME", "CELL", "CPU", "MEMORY", "DISK", "PIDS", "RECEIVED", "SENT"}, Empty: "nothing was measured"}
	for i, p := range cells {
		if err := answers[i].err; err != nil {
			if errors.Is(err, httpapi.ErrForbidden) {
				return err
			}
			v.Notes = append(v.Notes, fmt.Sprintf("cell %s: %v", p.CellID, err))
		}
		for _, u := range answers[i].value {
			list = append(list, usageDoc{p.CellID, u})
		}
	}
	guid, domains := c.arg(0), c.list("domain")
	list = slices.DeleteFunc(list, func(u usageDoc) bool {
		return guid != "" && guid != u.ProcessGUID && guid != u.TaskGUID || len(domains) > 0 && !slices.Contains(domains, u.Domain)
	})
	sortUsages(list, c.text("sort"))
	for i := range list {
		u := &list[i]
		cpu := "-"
		if u.Cores >= 0 {
			cpu = fmt.Sprintf("%.1f%%", u.Cores*100)
		}
		v.Add(u, show.Text(u.name()), show.Text(u.CellID), show.Text(cpu), show.Text(ofLimit(u.MemoryBytes, u.MemoryLimitBytes)), show.Text(ofLimit(u.DiskBytes, u.DiskLimitBytes)),
			show.Text(ofCount(u.PIDs, u.MaxPIDs)), show.Text(perSecond(u.ReceivedPerSecond)), show.Text(perSecond(u.SentPerSecond)))
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
