package examples_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// A router knows by which names processes are reached, and by which addresses
// instances, from lists and events of a BBS. Names within the fleet come with
// the instances, as labels; all others from the routing infos.
type router struct {
	mu        sync.Mutex
	instances map[string]lrp.ActualLRP // RUNNING and routable ones, by place
	hosts     map[string]string        // process guids by the hostnames of the router "http"
	err       error
	turn      atomic.Uint64
	// served counts requests by the address that was preferred.
	served [lrp.PreferHost + 1]atomic.Uint64
}

// newRouter reads everything, and follows what happens from then on.
func (c *cluster) newRouter() *router {
	c.t.Helper()
	r := &router{instances: map[string]lrp.ActualLRP{}, hosts: map[string]string{}}
	newest := c.newest()
	for info, err := range c.client.RoutingInfos(within(c.t), storage.DeploymentFilter{Domains: []string{domain}}) {
		if err != nil {
			c.t.Fatal(err)
		}
		r.learn(info)
	}
	for a, err := range c.client.ActualLRPs(within(c.t), storage.ActualLRPFilter{Domains: []string{domain}, Labels: true}) {
		if err != nil {
			c.t.Fatal(err)
		}
		r.change(nil, &a)
	}
	c.hearFrom(newest, storage.EventFilter{Domains: []string{domain}, Labels: true}, r.hear)
	return r
}

func (r *router) hear(e storage.Event, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.err = err
		return
	}
	if e.LRP == nil {
		return
	}
	switch e.LRP.Kind {
	case lrp.InstanceCreated, lrp.InstanceChanged, lrp.InstanceRemoved:
		r.change(e.LRP.Before, e.LRP.After)
	case lrp.DeploymentCreated, lrp.DeploymentChanged:
		r.learn(e.LRP.DeploymentAfter.RoutingInfo())
	}
}

func (r *router) change(before, after *lrp.ActualLRP) {
	if before != nil {
		delete(r.instances, before.ProcessGUID+place(before))
	}
	if after != nil && after.State == lrp.Running && after.Routable {
		r.instances[after.ProcessGUID+place(after)] = *after
	}
}

func (r *router) learn(info lrp.RoutingInfo) {
	var routes []struct {
		Hostname string `json:"hostname"`
	}
	if err := json.Unmarshal(info.Routes["http"], &routes); err != nil {
		r.err = err
	}
	for _, route := range routes {
		r.hosts[route.Hostname] = info.ProcessGUID
	}
}

// pick chooses an instance for a hostname.
func (r *router) pick(hostname string) (address string, of lrp.ActualLRP, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return "", of, r.err
	}
	var addresses []string
	var instances []lrp.ActualLRP
	for _, a := range r.instances {
		routed := r.hosts[hostname] == a.ProcessGUID
		for _, internal := range a.InternalRoutes {
			routed = routed || internal.Hostname == hostname
		}
		if host, port, ok := a.Endpoint(8080); ok && routed {
			addresses = append(addresses, net.JoinHostPort(host, strconv.Itoa(int(port))))
			instances = append(instances, a)
		}
	}
	if len(addresses) == 0 {
		return "", of, fmt.Errorf("%s has no instance", hostname)
	}
	i := int(r.turn.Add(1) % uint64(len(addresses)))
	return addresses[i], instances[i], nil
}

// request is one request through the router to an instance. It is not repeated.
func (r *router) request(client *http.Client, hostname string) (to lrp.ActualLRP, err error) {
	address, to, err := r.pick(hostname)
	if err != nil {
		return to, err
	}
	response, err := client.Get("http://" + address + "/")
	if err != nil {
		return to, fmt.Errorf("%s at %s, instance %d of %s: %w", hostname, address, to.Index, to.DefinitionID, err)
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil || response.StatusCode != http.StatusOK {
		return to, fmt.Errorf("%s at %s, instance %d of %s: %s, %w", hostname, address, to.Index, to.DefinitionID, response.Status, err)
	}
	r.served[to.PreferredAddress].Add(1)
	return to, nil
}

// traffic sends requests for the hostnames until the function that it returns
// is called, which may be called more than once. failed hears of each that
// fails, from several goroutines.
func (r *router) traffic(failed func(lrp.ActualLRP, error), hostnames ...string) (stop func()) {
	ended := make(chan struct{})
	var clients sync.WaitGroup
	for _, hostname := range hostnames {
		clients.Go(func() {
			client := &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true}}
			for {
				select {
				case <-ended:
					return
				case <-time.After(2 * time.Millisecond): // some 400 requests a second
				}
				if to, err := r.request(client, hostname); err != nil {
					failed(to, err)
				}
			}
		})
	}
	return sync.OnceFunc(func() { close(ended); clients.Wait() })
}

func TestARouterServesThroughAScaleUpARolloutAndADrainWithoutAFailedRequest(t *testing.T) {
	c := newCluster(t, "sqlite:"+t.TempDir()+"/diego.db", 1, 0)
	c.startCell("cell-1", "--preferred-address", "instance")
	c.startCell("cell-2", "--preferred-address", "host")
	web := c.app("web", 2, "serve")
	web.Routes = lrp.Routes{
		lrp.InternalRouter: []byte(`[{"hostname":"web.internal"}]`),
		"http":             []byte(`[{"hostname":"web.example","port":8080}]`),
	}
	web.MetricTags = map[string]lrp.MetricTag{"app": {Static: "web"}}
	c.desire(web)
	c.running("web", 2)
	r := c.newRouter()

	failed := func(_ lrp.ActualLRP, err error) { t.Error(err) }
	defer r.traffic(failed, "web.internal", "web.example")()

	c.scale("web", 4)
	for _, a := range c.running("web", 4) {
		if want := map[string]lrp.PreferredAddress{"cell-1": lrp.PreferInstance, "cell-2": lrp.PreferHost}[a.CellID]; a.PreferredAddress != want {
			t.Errorf("instance %d on %s prefers %v, want %v", a.Index, a.CellID, a.PreferredAddress, want)
		}
	}
	second, next := "v2", web.Definition
	next.LogSource = "V2"
	if err := c.client.UpdateDeployment(within(t), "web", lrp.Update{DefinitionID: &second, Definition: &next}); err != nil {
		t.Fatal(err)
	}
	c.eventually("the rollout is complete", func() (bool, error) {
		status, err := c.client.RolloutStatus(within(t), "web")
		return status.Complete(), err
	})
	c.running("web", 4)
	if status := c.cells["cell-1"].terminate(); status != 0 {
		t.Errorf("the drained cell ended with status %d", status)
	}
	for _, a := range c.running("web", 4) {
		if a.CellID != "cell-2" || a.DefinitionID != second {
			t.Errorf("instance %d is of %s on %s", a.Index, a.DefinitionID, a.CellID)
		}
	}
	if r.served[lrp.PreferInstance].Load() == 0 || r.served[lrp.PreferHost].Load() == 0 || r.served[lrp.PreferNone].Load() > 0 {
		t.Errorf("requests by preferred address: %d of none, %d of instances, %d of hosts", r.served[0].Load(), r.served[1].Load(), r.served[2].Load())
	}
	t.Logf("%d requests went to instances' own addresses and %d to hosts'", r.served[lrp.PreferInstance].Load(), r.served[lrp.PreferHost].Load())

	// Routes change without a restart.
	routes := lrp.Routes{lrp.InternalRouter: []byte(`[{"hostname":"www.internal"},{"hostname":"web.internal"}]`), "http": web.Routes["http"]}
	if err := c.client.UpdateDeployment(within(t), "web", lrp.Update{Routes: &routes}); err != nil {
		t.Fatal(err)
	}
	labelled, err := list(c.client.ResolvedLRPs(within(t), storage.ActualLRPFilter{ProcessGUIDs: []string{"web"}, Labels: true}))
	if err != nil || len(labelled) != 4 {
		t.Fatalf("%d instances, %v", len(labelled), err)
	}
	for _, a := range labelled {
		if len(a.InternalRoutes) != 2 || a.InternalRoutes[0].Hostname != "www.internal" || a.MetricTags["app"] != "web" {
			t.Errorf("instance %d has the labels %v %v", a.Index, a.InternalRoutes, a.MetricTags)
		}
	}

	// A sync sees what is desired, and older readers one record for each index.
	infos, err := list(c.client.SchedulingInfos(within(t), storage.DeploymentFilter{Domains: []string{domain}}))
	if err != nil || len(infos) != 1 || infos[0].ProcessGUID != "web" || infos[0].Instances != 4 || infos[0].ActiveDefinitionID != second || string(infos[0].Routes["http"]) != string(web.Routes["http"]) {
		t.Errorf("the scheduling infos are %+v, %v", infos, err)
	}
	groups, err := list(c.client.ActualLRPGroups(within(t), storage.ActualLRPFilter{Domains: []string{domain}}))
	if err != nil || len(groups) != 4 {
		t.Fatalf("%d groups, %v", len(groups), err)
	}
	for i, g := range groups {
		if g.Instance == nil || g.Instance.Index != i || g.Instance.InstanceGUID != labelled[i].InstanceGUID || g.Evacuating != nil {
			t.Errorf("group %d is %+v", i, g)
		}
	}
}
