package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// This file holds the commands about LRPs.

func lrpCreate(c *call) error {
	l, err := spec(c, specfile.LRP)
	if err != nil {
		return err
	}
	r, err := c.remote()
	if err != nil {
		return err
	}
	if err := r.bbs.Desire(c.ctx, l); err != nil {
		return err
	}
	if err := c.say(done{Done: "created", ProcessGUID: l.ProcessGUID}, "%s is desired, %s", l.ProcessGUID, count(l.Instances, "instance")); err != nil {
		return err
	}
	return c.waitForInstances(l.ProcessGUID)
}

func lrpUpdate(c *call) error {
	guid := c.arg(0)
	var u lrp.Update
	if c.given("f") {
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
		text := c.flag("annotation")
		u.Annotation = &text
	}
	if c.given("route") {
		routes, err := parseRoutes(c.list("route"))
		if err != nil {
			return wrongUse(c.command, "%v", err)
		}
		u.Routes = &routes
	}
	if u == (lrp.Update{}) {
		return wrongUse(c.command, "there is nothing to change; give -f, -instances, -annotation or -route")
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
			return nil, fmt.Errorf("-route is %q; want a router's name, =, and JSON, such as http=[{\"hostname\":\"web.example.com\"}]", line)
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
		text += ", " + count(*u.Instances, "instance")
	}
	if u.DefinitionID != nil {
		text += ", to definition " + *u.DefinitionID
	}
	if err := c.say(done{Done: what, ProcessGUID: guid}, "%s", text); err != nil {
		return err
	}
	return c.waitForInstances(guid)
}

// waitForInstances waits, if -wait says so, until every instance runs the
// active definition and there are no others.
func (c *call) waitForInstances(guid string) error {
	if !c.on("wait") {
		return nil
	}
	r, err := c.remote()
	if err != nil {
		return err
	}
	err = c.until(func() (bool, string, error) {
		d, err := r.bbs.Deployment(c.ctx, guid)
		if err != nil {
			return false, "", err
		}
		status, err := r.bbs.RolloutStatus(c.ctx, guid)
		if err != nil {
			return false, "", err
		}
		there, why := 0, ""
		for a, err := range r.bbs.ActualLRPs(c.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{guid}}) {
			if err != nil {
				return false, "", err
			}
			there++
			if text := troubleOf(&a); text != "" && why == "" {
				why = fmt.Sprintf("; instance %d: %s", a.Index, text)
			}
		}
		return status.Complete() && there == d.Instances, fmt.Sprintf("%d of %d run%s", status.Done, d.Instances, why), nil
	})
	if err != nil {
		return err
	}
	return c.say(done{Done: "running", ProcessGUID: guid}, "%s runs", guid)
}

func lrpDelete(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	for _, guid := range c.args {
		if err := r.bbs.DeleteDeployment(c.ctx, guid); err != nil {
			return fmt.Errorf("%s: %w", guid, err)
		}
		if err := c.say(done{Done: "deleted", ProcessGUID: guid}, "%s is not desired any more, its instances stop", guid); err != nil {
			return err
		}
	}
	return nil
}

func lrpRestart(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	guid, index := c.arg(0), c.argNumber(1)
	if err := r.bbs.Retire(c.ctx, guid, index, c.flag("definition")); err != nil {
		return err
	}
	return c.say(done{Done: "restarted", ProcessGUID: guid, Index: &index}, "%s/%d stops and starts again", guid, index)
}

func lrpList(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
	instances := map[string][]lrp.ActualLRP{}
	for a, err := range r.bbs.ResolvedLRPs(c.ctx, storage.ActualLRPFilter{Domains: c.list("domain")}) {
		if err != nil {
			return err
		}
		instances[a.ProcessGUID] = append(instances[a.ProcessGUID], a)
	}
	v := &view{heading: []string{"PROCESS", "DOMAIN", "RUNNING", "MEMORY", "DISK", "DEFINITION", "AGE", "TROUBLE"}, empty: "nothing is desired"}
	for d, err := range r.bbs.Deployments(c.ctx, storage.DeploymentFilter{Domains: c.list("domain")}) {
		if err != nil {
			return err
		}
		running, summary := summarize(d, instances[d.ProcessGUID])
		definition := d.Definitions[d.ActiveDefinitionID]
		v.add(d.Project(), text(d.ProcessGUID), text(d.Domain), running, text(megabytes(definition.MemoryMB)), text(megabytes(definition.DiskMB)),
			text(d.ActiveDefinitionID), text(age(c.now(), d.ModificationTag.Created())), summary)
	}
	return c.show(v)
}

// summarize says how many instances run, and what is wrong with the others.
func summarize(d *lrp.Deployment, list []lrp.ActualLRP) (running, trouble cell) {
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
	running = cell{fmt.Sprintf("%d/%d", n, d.Instances), green}
	if n < d.Instances {
		running.style = yellow
	}
	var parts []string
	for _, s := range [...]lrp.State{lrp.Crashed, lrp.Unclaimed, lrp.Claimed} {
		if states[s] > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", states[s], s))
		}
	}
	trouble.text = strings.Join(parts, ", ")
	if why != "" {
		trouble.text += ": " + why
	}
	if states[lrp.Crashed] > 0 {
		trouble.style, running.style = red, red
	}
	return running, trouble
}

func lrpGet(c *call) error {
	r, err := c.remote()
	if err != nil {
		return err
	}
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
	v := c.instancesView(list, false, f)
	running, _ := summarize(d, list)
	v.doc, v.about = d.Project(), c.aboutDeployment(d, running.text)
	return c.show(v)
}

// aboutDeployment describes what is desired.
func (c *call) aboutDeployment(d *lrp.Deployment, running string) (about [][2]string) {
	definition := d.Definitions[d.ActiveDefinitionID]
	add := func(name, value string) {
		if value != "" {
			about = append(about, [2]string{name, value})
		}
	}
	add("process", d.ProcessGUID)
	add("domain", d.Domain)
	add("running", running)
	add("definition", d.ActiveDefinitionID)
	add("strategy", d.UpdateStrategy.String())
	add("size", sizeOf(definition.Resources))
	add("root fs", definition.RootFS)
	add("placement tags", strings.Join(definition.PlacementTags, ", "))
	add("action", actionText(definition.Action))
	add("ports", joinPorts(definition.Ports))
	add("routes", strings.Join(slices.Sorted(maps.Keys(d.Routes)), ", "))
	add("annotation", d.Annotation)
	add("age", age(c.now(), d.ModificationTag.Created()))
	return about
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

// count is such as "1 instance" and "2 instances".
func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}
