package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

func instancesCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "instances [GUID]", Short: "List instances, of one process or of all", RunE: p.asks(instances), ValidArgsFunction: cli.Completes(p.processGUIDs(), nil),
		Example: "  diegoctl instances --watch\n  diegoctl instances --state CRASHED -o json\n  diegoctl instances web --usage",
	}, p.domainFlags(), p.cellFlags(), p.selectorFlags("those of processes"), []cli.Flag{
		{Name: "state", Kind: cli.OneOf("STATE", "UNCLAIMED", "CLAIMED", "RUNNING", "CRASHED"), Many: true, Help: "only those in this state; may be repeated"},
		{Name: "all", Kind: cli.Switch, Help: "all records of each index: also those of suspect and evacuating cells and of other definitions"},
		{Name: "groups", Kind: cli.Switch, Help: "what routers see: for each definition at each index the instance, and the one that leaves its cell; with -o json one document for both"},
		{Name: "sort", Kind: cli.OneOf("BY", instanceOrders...), Default: "index",
			Help: "by process and index; by cell; by state, with what does not run first; the youngest first; or what crashed most first"},
		{Name: "usage", Kind: cli.Switch, Help: "also what each uses, as its cell has measured it last: see diegoctl top"},
		{Name: "labels", Kind: cli.Switch, Help: "with -o json, also the internal routes and metric tags of each instance"},
	}, watchFlags)
}

var instanceOrders = []string{"index", "cell", "state", "age", "crashes"}

// sortInstances sorts a list that is in the order of processes and indices.
func sortInstances(list []lrp.ActualLRP, by string) {
	slices.SortStableFunc(list, func(a, b lrp.ActualLRP) int {
		switch by {
		case "cell":
			return cmp.Compare(a.CellID, b.CellID)
		case "state":
			return cmp.Or(cmp.Compare(rankOf(&a), rankOf(&b)), cmp.Compare(a.State, b.State))
		case "age":
			return b.Since.Compare(a.Since)
		case "crashes":
			return cmp.Compare(b.CrashCount, a.CrashCount)
		}
		return 0
	})
}

// rankOf is 1 for what runs, which comes last.
func rankOf(a *lrp.ActualLRP) int {
	if a.State == lrp.Running {
		return 1
	}
	return 0
}

func instances(c *call, r *remote) error {
	if c.on("all") && c.on("groups") {
		return cli.Wrong("give --all or --groups, not both")
	}
	if c.on("groups") && c.given("sort") {
		return cli.Wrong("give --sort or --groups, not both: groups are in the order of their indices")
	}
	if c.on("groups") && c.on("usage") {
		return cli.Wrong("give --usage or --groups, not both")
	}
	f := storage.ActualLRPFilter{CellIDs: c.list("cell"), Domains: c.list("domain"), Selector: c.selector(), Labels: c.on("labels")}
	if guid := c.arg(0); guid != "" {
		f.ProcessGUIDs = []string{guid}
	}
	for _, name := range c.list("state") {
		var s lrp.State
		if err := s.UnmarshalText([]byte(name)); err != nil {
			return err
		}
		f.States = append(f.States, s)
	}
	records := r.bbs.ResolvedLRPs
	if c.on("all") {
		records = r.bbs.ActualLRPs
	}
	var groups []lrp.Group
	var list []lrp.ActualLRP
	var err error
	if c.on("groups") {
		groups, err = collect(r.bbs.ActualLRPGroups(c.ctx, f))
		list = membersOf(groups)
	} else {
		list, err = collect(records(c.ctx, f))
	}
	if err != nil {
		return err
	}
	if guid := c.arg(0); guid != "" && len(list) == 0 {
		// Nothing there is an answer, unless nobody wants anything there.
		if _, err := r.bbs.Deployment(c.ctx, guid); err != nil {
			return err
		}
	}
	fate, err := c.fates(r, list)
	if err != nil {
		return err
	}
	sortInstances(list, c.text("sort"))
	if c.on("groups") && c.Programs {
		v := &show.View{}
		for _, g := range groups {
			v.Add(g)
		}
		return c.Show(v)
	}
	var present []bbs.CellPresence
	if !c.Programs || c.on("usage") {
		if present, err = r.bbs.Cells(c.ctx); err != nil {
			return err
		}
	}
	var used usageByInstance
	var notes []string
	if c.on("usage") {
		if used, notes, err = c.usageOf(r, list, present); err != nil {
			return err
		}
	}
	v := c.instancesView(list, c.on("all") || c.on("groups"), fate, used)
	if note := absence(list, present); note != "" {
		v.Notes = append(v.Notes, note)
	}
	v.Notes = append(v.Notes, notes...)
	return c.Show(v)
}

// A usageByInstance has what instances use. It is nil if nobody asked.
type usageByInstance map[lrp.InstanceKey]*rep.ContainerUsage

// usageOf asks the cells on which instances are.
func (c *call) usageOf(r *remote, list []lrp.ActualLRP, present []bbs.CellPresence) (usageByInstance, []string, error) {
	on := map[string]bool{}
	for i := range list {
		on[list[i].CellID] = true
	}
	present = slices.DeleteFunc(slices.Clone(present), func(p bbs.CellPresence) bool { return !on[p.CellID] })
	all, notes, err := c.usages(r, present)
	used := make(usageByInstance, len(all))
	for i := range all {
		used[lrp.InstanceKey{InstanceGUID: all[i].ContainerGUID, CellID: all[i].CellID}] = &all[i].ContainerUsage
	}
	return used, notes, err
}

// An instanceDoc is an instance and what it uses, for programs.
type instanceDoc struct {
	*lrp.ActualLRP
	usage *rep.ContainerUsage // nil if nothing was measured
}

// MarshalJSON writes the members of the record, and then usage.
func (d instanceDoc) MarshalJSON() ([]byte, error) {
	text, err := d.ActualLRP.MarshalJSON()
	if err != nil || d.usage == nil {
		return text, err
	}
	usage, err := json.Marshal(d.usage)
	text = append(append(text[:len(text)-1], `,"usage":`...), usage...)
	return append(text, '}'), err
}

// membersOf lists the records of groups.
func membersOf(groups []lrp.Group) (list []lrp.ActualLRP) {
	for _, g := range groups {
		for _, r := range []*lrp.ActualLRP{g.Instance, g.Evacuating} {
			if r != nil {
				list = append(list, *r)
			}
		}
	}
	return list
}

// allAbsent is what the loss of all cells means (see converge.Guard).
const allAbsent = "no cell is present. That all are lost at once is not believed: the records stay as they were reported last, and nothing is started elsewhere, until a cell is back"

// absence says of which records nobody has heard lately, as their cells are not
// present, or "". A record that is SUSPECT or EVACUATING says so itself.
func absence(list []lrp.ActualLRP, present []bbs.CellPresence) string {
	var absent []string
	for i := range list {
		a := &list[i]
		if a.CellID != "" && a.Presence == lrp.Ordinary && !slices.ContainsFunc(present, func(p bbs.CellPresence) bool { return p.CellID == a.CellID }) {
			absent = append(absent, a.CellID)
		}
	}
	slices.Sort(absent)
	absent = slices.Compact(absent)
	switch {
	case len(absent) == 0:
		return ""
	case len(present) == 0:
		return allAbsent
	case len(absent) == 1:
		return absent[0] + " is not present: what is on it is shown as it was reported last"
	}
	return strings.Join(absent, ", ") + " are not present: what is on them is shown as it was reported last"
}

// instancesView is a table of instances. With all it says of each what tells
// several records at one index apart. Unless used is nil, it says what each uses.
func (c *call) instancesView(list []lrp.ActualLRP, all bool, f fates, used usageByInstance) *show.View {
	v := &show.View{Heading: []string{"INSTANCE", "STATE", "CELL", "AGE", "CRASHES", "ADDRESS", "WHY"}, Empty: "there is no instance"}
	if all {
		v.Heading = []string{"INSTANCE", "DEFINITION", "STATE", "CELL", "CONTAINER", "AGE", "CRASHES", "ADDRESS", "WHY"}
	}
	if used != nil {
		v.Heading = slices.Insert(v.Heading, len(v.Heading)-1, usageHeading...)
	}
	for i := range list {
		a := &list[i]
		name, state := show.Text(fmt.Sprintf("%s/%d", a.ProcessGUID, a.Index)), stateCell(a)
		rest := []show.Cell{show.Text(show.Age(c.now(), a.Since)), show.Text(strconv.Itoa(a.CrashCount)), show.Text(addressOf(&a.NetInfo)), show.Text(f.why(a, c.now()))}
		cells := append([]show.Cell{name, state, show.Text(show.OrDash(a.CellID))}, rest...)
		if all {
			cells = append([]show.Cell{name, show.Text(a.DefinitionID), state, show.Text(show.OrDash(a.CellID)), show.Text(show.OrDash(a.InstanceGUID))}, rest...)
		}
		if used == nil {
			v.Add(a, cells...)
			continue
		}
		usage := used[a.InstanceKey]
		v.Add(instanceDoc{a, usage}, slices.Insert(cells, len(cells)-1, usageCells(usage)...)...)
	}
	return v
}

func stateCell(a *lrp.ActualLRP) show.Cell {
	s := show.Yellow.Of(a.State.String())
	switch {
	case a.State == lrp.Crashed:
		s.Style = show.Red
	case a.State == lrp.Running && a.Presence == lrp.Ordinary && a.Routable && a.Stopping.IsZero():
		s.Style = show.Green
	}
	if a.Presence != lrp.Ordinary {
		s.Text += " " + a.Presence.String()
	} else if a.State == lrp.Running && !a.Routable {
		s.Text += " not ready"
	}
	if !a.Stopping.IsZero() {
		s.Text += " stopping"
	}
	return s
}

// fates say what becomes of instances, which their records do not.
type fates struct {
	// restarts is nil if nobody knows.
	restarts *lrp.RestartPolicy
	// desired are the bare deployments by process guid.
	desired map[string]*lrp.Deployment
}

// fates asks for what people want to know of the instances. Programs have the
// records.
func (c *call) fates(r *remote, list []lrp.ActualLRP) (f fates, err error) {
	if c.Programs || len(list) == 0 {
		return f, nil
	}
	if slices.ContainsFunc(list, func(a lrp.ActualLRP) bool { return a.State == lrp.Crashed }) {
		if policy, err := r.bbs.RestartPolicy(c.ctx); err == nil { // an older BBS does not tell
			f.restarts = &policy
		}
	}
	guids := make([]string, len(list))
	for i := range list {
		guids[i] = list[i].ProcessGUID
	}
	slices.Sort(guids)
	f.desired = map[string]*lrp.Deployment{}
	for d, err := range r.bbs.Deployments(c.ctx, storage.DeploymentFilter{ProcessGUIDs: slices.Compact(guids), Bare: true}) {
		if err != nil {
			return f, err
		}
		f.desired[d.ProcessGUID] = d
	}
	return f, nil
}

// why is what an operator should know about an instance: what is wrong with
// it, when it restarts after a crash, and whether it stops.
func (f fates) why(a *lrp.ActualLRP, now time.Time) string {
	text := troubleOf(a)
	d := f.desired[a.ProcessGUID]
	if f.desired != nil && a.CellID != "" && !d.Desires(a.Index) {
		return join(text, "stops: it is not desired any more")
	}
	if a.State != lrp.Crashed || f.restarts == nil {
		return text
	}
	switch next := (lrp.Policy{Restart: *f.restarts}).For(d).Restart.Next(a.CrashCount, a.Since); {
	case next.Never:
		return join(text, "is given up: it has crashed too often")
	case next.Due(now):
		return join(text, "restarts now")
	default:
		return join(text, "restarts in "+show.Short(next.At.Sub(now)))
	}
}

// join is both texts, or the one that is not empty.
func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// addressOf is such as "10.0.0.1:61001→8080".
func addressOf(n *lrp.NetInfo) string {
	if n.Address == "" {
		return "-"
	}
	if len(n.Ports) == 0 {
		return n.Address
	}
	parts := make([]string, len(n.Ports))
	for i, p := range n.Ports {
		parts[i] = fmt.Sprintf("%s→%d", net.JoinHostPort(n.Address, strconv.Itoa(int(p.HostPort))), p.ContainerPort)
	}
	return strings.Join(parts, " ")
}
