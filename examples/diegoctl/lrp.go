package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

func lrpCommands(p *process) *cobra.Command {
	process := cli.Completes(p.processGUIDs(), nil)
	return cli.Group(&cobra.Command{Use: "lrp", Short: "Long-running processes"},
		cli.With(&cobra.Command{
			Use: "create --file FILE", Short: "Desire a long-running process", RunE: p.runs(lrpCreate),
			Example: "  diegoctl lrp create -f greeter.json --wait",
		}, fileFlags("a desired LRP"), minHealthyFlags, waitFlags),
		cli.With(&cobra.Command{
			Use: "update GUID", Short: "Change what needs no restart", RunE: p.runs(lrpUpdate), ValidArgsFunction: process,
			Long: "Change what needs no restart. For anything else give the process another definition: see deployment update.",
			Example: `  diegoctl lrp update web --route 'http=[{"hostname":"web.example.com","port":8080}]'
  diegoctl lrp update web --label team=blog --label owner-`,
		}, []cli.Flag{
			{Name: "file", Short: "f", Kind: cli.File, Help: "a spec file in YAML or JSON, of an update; - is standard input"},
			{Name: "instances", Kind: cli.Number, Help: "how many instances are wanted"},
			{Name: "annotation", Kind: cli.Text, Help: "free text"},
			{Name: "label", Kind: &cli.Kind{Name: "KEY=VALUE"}, Many: true, Help: "a label to set, or KEY- to remove one; may be repeated, and the other labels stay"},
			{Name: "min-healthy", Kind: cli.Duration, Help: "how long a new instance must run and be ready before it replaces an old one"},
			{Name: "route", Kind: &cli.Kind{Name: "ROUTER=JSON"}, Many: true, Help: "what a router gets; may be repeated, and replaces all routes"},
		}, waitFlags),
		cli.With(&cobra.Command{
			Use: "scale GUID N", Short: "Change the number of instances", RunE: p.runs(lrpScale), ValidArgsFunction: process,
			Example: "  diegoctl lrp scale greeter 5 --wait",
		}, waitFlags),
		cli.With(&cobra.Command{
			Use: "get GUID", Short: "Show a process and its instances", RunE: p.asks(lrpGet), ValidArgsFunction: process,
			Long: "Show a process and its instances. With -o json it is the desired LRP, which lrp create reads.",
		}, watchFlags),
		cli.With(&cobra.Command{
			Use: "list", Short: "List what is desired, and how much of it runs", RunE: p.asks(lrpList),
			Example: "  diegoctl lrp list -l team=blog,tier!=web",
		}, p.domainFlags(), p.selectorFlags("processes"), watchFlags),
		cli.With(&cobra.Command{
			Use: "routes [GUID]", Short: "List what routers get of each process", RunE: p.asks(lrpRoutes), ValidArgsFunction: process,
			Example: "  diegoctl lrp routes --domain apps -o json",
		}, p.domainFlags(), p.selectorFlags("processes"), watchFlags),
		cli.With(&cobra.Command{
			Use: "delete GUID...", Short: "End processes; their instances stop", RunE: p.asks(lrpDelete), ValidArgsFunction: cli.Completes(p.processGUIDs()),
			Example: "  diegoctl lrp delete web worker --wait",
		}, waitFlags),
		cli.With(&cobra.Command{
			Use: "restart-instance GUID INDEX", Short: "Stop what runs at an index, so that it starts again", RunE: p.asks(lrpRestart), ValidArgsFunction: process,
		}, []cli.Flag{{Name: "definition", Kind: &cli.Kind{Name: "ID"}, Help: "the instance of this definition (without it: of the active one)"}}),
	)
}

func lrpCreate(c *call) error {
	l, err := spec(c, specfile.LRP)
	if err != nil {
		return err
	}
	l.Rollout = c.rolloutPolicy(l.Rollout)
	r, err := c.remote()
	if err != nil {
		return err
	}
	if err := r.bbs.Desire(c.ctx, l); err != nil {
		return err
	}
	if err := c.Say(done{Done: "created", ProcessGUID: l.ProcessGUID}, "%s is desired, %s", l.ProcessGUID, show.Count(l.Instances, "instance")); err != nil {
		return err
	}
	return c.waitForInstances(l.ProcessGUID)
}

func lrpUpdate(c *call) error {
	guid := c.arg(0)
	var u lrp.Update
	if c.given("file") {
		var err error
		if u, err = spec(c, specfile.Update); err != nil {
			return err
		}
	}
	if c.given("instances") {
		n := c.number("instances")
		u.Instances = &n
	}
	if c.given("annotation") {
		text := c.text("annotation")
		u.Annotation = &text
	}
	if c.given("route") {
		routes, err := parseRoutes(c.list("route"))
		if err != nil {
			return cli.Wrong("%v", err)
		}
		u.Routes = &routes
	}
	if c.given("label") && u.Labels == nil || c.given("min-healthy") && u.Rollout == nil {
		r, err := c.remote()
		if err != nil {
			return err
		}
		d, err := r.bbs.Deployment(c.ctx, guid)
		if err != nil {
			return err
		}
		// What the flags do not change stays.
		if c.given("label") {
			u.Labels = cmp.Or(u.Labels, &d.Labels)
		}
		if c.given("min-healthy") {
			u.Rollout = cmp.Or(u.Rollout, d.Rollout)
		}
	}
	if c.given("label") {
		labels, err := withLabels(*u.Labels, c.list("label"))
		if err != nil {
			return err
		}
		u.Labels = &labels
	}
	if c.given("min-healthy") {
		u.Rollout = cmp.Or(c.rolloutPolicy(u.Rollout), &lrp.RolloutPolicy{})
	}
	if u == (lrp.Update{}) {
		return cli.Wrong("there is nothing to change; give --file, --instances, --annotation, --label, --min-healthy or --route")
	}
	return c.update(guid, u, "updated")
}

// parseRoutes reads NAME=JSON. A name alone removes nothing: routes are
// replaced as a whole.
func parseRoutes(list []string) (lrp.Routes, error) {
	routes := lrp.Routes{}
	for _, line := range list {
		name, value, ok := strings.Cut(line, "=")
		if !ok || name == "" || !json.Valid([]byte(value)) {
			return nil, fmt.Errorf("--route is %q; want a router's name, =, and JSON, such as http=[{\"hostname\":\"web.example.com\"}]", line)
		}
		routes[name] = json.RawMessage(value)
	}
	return routes, nil
}

func lrpScale(c *call) error {
	n := c.argNumber(1)
	return c.update(c.arg(0), lrp.Update{Instances: &n}, "scaled")
}

func (c *call) update(guid string, u lrp.Update, what string) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	if err := r.bbs.UpdateDeployment(c.ctx, guid, u); err != nil {
		return err
	}
	text := guid + " is " + what
	if u.Instances != nil {
		text += ", " + show.Count(*u.Instances, "instance")
	}
	if u.DefinitionID != nil {
		text += ", to definition " + *u.DefinitionID
	}
	if err := c.Say(done{Done: what, ProcessGUID: guid}, "%s", text); err != nil {
		return err
	}
	return c.waitForInstances(guid)
}

func lrpDelete(c *call, r *remote) error {
	for _, guid := range c.args {
		if err := r.bbs.DeleteDeployment(c.ctx, guid); err != nil {
			return fmt.Errorf("%s: %w", guid, err)
		}
		if err := c.Say(done{Done: "deleted", ProcessGUID: guid}, "%s is not desired any more, its instances stop", guid); err != nil {
			return err
		}
	}
	if !c.on("wait") {
		return nil
	}
	err := c.until(func() (bool, string, error) {
		list, err := collect(r.bbs.ActualLRPs(c.ctx, storage.ActualLRPFilter{ProcessGUIDs: c.args}))
		if len(list) == 0 {
			return true, "", err
		}
		a := &list[0]
		return false, fmt.Sprintf("%s left; %s/%d is %s on %s", show.Count(len(list), "instance"), a.ProcessGUID, a.Index, a.State, show.OrDash(a.CellID)), err
	})
	if err != nil {
		return err
	}
	for _, guid := range c.args {
		if err := c.Say(done{Done: "gone", ProcessGUID: guid}, "%s is gone", guid); err != nil {
			return err
		}
	}
	return nil
}

func lrpRestart(c *call, r *remote) error {
	guid, index := c.arg(0), c.argNumber(1)
	if err := r.bbs.Retire(c.ctx, guid, index, c.text("definition")); err != nil {
		return err
	}
	return c.Say(done{Done: "restarted", ProcessGUID: guid, Index: &index}, "%s/%d stops and starts again", guid, index)
}

func lrpList(c *call, r *remote) error {
	instances := map[string][]lrp.ActualLRP{}
	for a, err := range r.bbs.ResolvedLRPs(c.ctx, storage.ActualLRPFilter{Domains: c.list("domain"), Selector: c.selector()}) {
		if err != nil {
			return err
		}
		instances[a.ProcessGUID] = append(instances[a.ProcessGUID], a)
	}
	v := &show.View{Heading: []string{"PROCESS", "DOMAIN", "RUNNING", "MEMORY", "DISK", "DEFINITION", "AGE", "TROUBLE"}, Empty: "nothing is desired"}
	for d, err := range r.bbs.Deployments(c.ctx, c.processes()) {
		if err != nil {
			return err
		}
		running, summary := summarize(d, instances[d.ProcessGUID])
		definition := d.Definitions[d.ActiveDefinitionID]
		v.Add(d.Project(), show.Text(d.ProcessGUID), show.Text(d.Domain), running, show.Text(megabytes(definition.MemoryMB)), show.Text(megabytes(definition.DiskMB)),
			show.Text(d.ActiveDefinitionID), show.Text(show.Age(c.now(), d.ModificationTag.Created())), summary)
	}
	return c.Show(v)
}

func lrpRoutes(c *call, r *remote) error {
	infos, err := collect(r.bbs.RoutingInfos(c.ctx, c.processes()))
	if err != nil {
		return err
	}
	if guid := c.arg(0); guid != "" && len(infos) == 0 {
		// Not found, unless the flags left it out.
		if _, err := r.bbs.Deployment(c.ctx, guid); err != nil {
			return err
		}
	}
	v := &show.View{Heading: []string{"PROCESS", "DOMAIN", "INSTANCES", "ROUTES"}, Empty: "nothing is desired"}
	for _, i := range infos {
		var routes []string
		for _, router := range slices.Sorted(maps.Keys(i.Routes)) {
			routes = append(routes, router+"="+string(i.Routes[router]))
		}
		v.Add(i, show.Text(i.ProcessGUID), show.Text(i.Domain), show.Text(strconv.Itoa(i.Instances)), show.Text(show.OrDash(strings.Join(routes, " "))))
	}
	return c.Show(v)
}

// processes is a filter of the process that the first argument names, or all,
// in the domains of --domain and with the labels of --selector.
func (c *call) processes() storage.DeploymentFilter {
	f := storage.DeploymentFilter{Domains: c.list("domain"), Selector: c.selector()}
	if guid := c.arg(0); guid != "" {
		f.ProcessGUIDs = []string{guid}
	}
	return f
}

// summarize says how many instances run, and what is wrong with the others.
func summarize(d *lrp.Deployment, list []lrp.ActualLRP) (running, trouble show.Cell) {
	n, states, why := 0, map[lrp.State]int{}, ""
	for i := range list {
		a := &list[i]
		switch {
		case a.Index >= d.Instances:
			continue
		case a.State == lrp.Running:
			n++
		default:
			states[a.State]++
		}
		if text := troubleOf(a); text != "" && why == "" {
			why = text
		}
	}
	running = show.Green.Of(fmt.Sprintf("%d/%d", n, d.Instances))
	if n < d.Instances {
		running.Style = show.Yellow
	}
	var parts []string
	for _, s := range [...]lrp.State{lrp.Crashed, lrp.Unclaimed, lrp.Claimed} {
		if states[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", states[s], s))
		}
	}
	trouble.Text = strings.Join(parts, ", ")
	if why != "" {
		trouble.Text += ": " + why
	}
	if states[lrp.Crashed] > 0 {
		trouble.Style, running.Style = show.Red, show.Red
	}
	return running, trouble
}

func lrpGet(c *call, r *remote) error {
	d, err := r.bbs.Deployment(c.ctx, c.arg(0))
	if err != nil {
		return err
	}
	list, err := collect(r.bbs.ResolvedLRPs(c.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{d.ProcessGUID}}))
	if err != nil {
		return err
	}
	f, err := c.fates(r, list)
	if err != nil {
		return err
	}
	v := c.instancesView(list, false, f, nil)
	running, _ := summarize(d, list)
	v.Doc = d.Project()
	definition, add := d.Definitions[d.ActiveDefinitionID], v.AddAbout
	add("process", d.ProcessGUID)
	add("domain", d.Domain)
	add("running", running.Text)
	add("definition", d.ActiveDefinitionID)
	add("strategy", d.UpdateStrategy.String())
	add("size", sizeOf(definition.Resources))
	add("root fs", definition.RootFS)
	add("placement tags", strings.Join(definition.PlacementTags, ", "))
	add("action", actionText(definition.Action))
	add("ports", joinPorts(definition.Ports))
	add("routes", strings.Join(slices.Sorted(maps.Keys(d.Routes)), ", "))
	add("annotation", d.Annotation)
	add("labels", labelText(d.Labels))
	add("age", show.Age(c.now(), d.ModificationTag.Created()))
	return c.Show(v)
}

// actionText is an action in a few words: what it runs, and nothing of
// arguments and environment, which may hold secrets.
func actionText(a executor.Action) string {
	var paths []string
	for inner := range a.All() {
		if inner.Run != nil {
			paths = append(paths, inner.Run.Path+" as "+inner.Run.User)
		}
	}
	if len(paths) == 0 {
		return string(a.Kind())
	}
	return "run " + strings.Join(paths, ", ")
}

func sizeOf(r executor.Resources) string {
	parts := []string{megabytes(r.MemoryMB) + " memory", megabytes(r.DiskMB) + " disk"}
	if r.MaxPIDs > 0 {
		parts = append(parts, fmt.Sprintf("%d processes", r.MaxPIDs))
	}
	if !r.Extra.IsZero() {
		parts = append(parts, r.Extra.String())
	}
	return strings.Join(parts, ", ")
}

// megabytes is a size in mebibytes, or gibibytes where that is whole.
func megabytes(n int64) string {
	switch {
	case n == 0:
		return "-"
	case n%1024 == 0:
		return fmt.Sprintf("%d GiB", n/1024)
	}
	return fmt.Sprintf("%d MiB", n)
}

func joinPorts(ports []uint16) string {
	parts := make([]string, len(ports))
	for i, p := range ports {
		parts[i] = fmt.Sprint(p)
	}
	return strings.Join(parts, ", ")
}
