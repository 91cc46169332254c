package examples_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

func TestEachFigureThatOperatorsKnowMovesWithRealContainers(t *testing.T) {
	c := newCluster(t, "sqlite:"+filepath.Join(t.TempDir(), "diego.db"), 1, 0)
	c.startCell("cell-1", "--usage-interval", "500ms")
	bbs, cell := c.bbs[c.bbsHosts[0]], c.cells["cell-1"]
	reader := c.clientOptions(httpapi.ConsumerRole)

	web := c.app("web", 1, "serve")
	web.MetricsGUID, web.MetricTags = "figures", map[string]executor.MetricTag{"source_id": {Static: "figures"}, "colour": {Static: "blue"}}
	c.desire(web)
	never := c.app("never", 1, "serve")
	never.StartTimeoutMs = 500
	never.Ports = []uint16{8080, 9090} // nobody listens at the second one
	never.Check = &executor.CheckDefinition{Checks: []executor.Check{{TCP: &executor.TCPCheck{Port: 9090}}}}
	large := c.app("large", 2, "serve")
	large.Resources.MemoryMB = 1 << 20
	for _, l := range []lrp.DesiredLRP{never, large} {
		c.desire(l)
	}
	for guid, status := range map[string]string{"well": "0", "badly": "1"} {
		if err := c.client.DesireTask(within(t), task.Desire{GUID: guid, Domain: domain, Definition: task.Definition{
			Resources: executor.Resources{MemoryMB: 32, DiskMB: 16}, RunInfo: c.run("exit", status),
		}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.client.UpsertDomain(within(t), "other", time.Hour); err != nil {
		t.Fatal(err)
	}
	if err := c.client.UpsertDomain(within(t), "", 0); err == nil {
		t.Error("a domain without a name is accepted")
	}
	positive := func(v float64) bool { return v > 0 }
	is := func(want float64) func(float64) bool { return func(v float64) bool { return v == want } }
	expected := []struct {
		at     *process
		series string
		right  func(float64) bool
	}{
		{bbs, `diego_requests_total{call="Desire",status="200"}`, is(3)},
		{bbs, `diego_requests_total{call="UpsertDomain",status="400"}`, is(1)},
		{bbs, `diego_request_duration_seconds_bucket{call="Desire",le="+Inf"}`, is(3)},
		{bbs, `diego_request_duration_seconds_count{call="Desire"}`, is(3)},
		{bbs, `diego_request_duration_seconds_sum{call="Desire"}`, positive},
		{bbs, `diego_lrps_desired`, is(4)},
		{bbs, `diego_lrps_missing`, is(3)},
		{bbs, `diego_processes_crashing`, is(1)},
		{bbs, `diego_lrp_crashes_total`, func(v float64) bool { return v >= 3 }},
		{bbs, `diego_tasks_started_total`, is(2)},
		{bbs, `diego_tasks_succeeded_total`, is(1)},
		{bbs, `diego_tasks_failed_total`, is(1)},
		{bbs, `diego_domain_expires_seconds{domain="other"}`, func(v float64) bool { return v > 3000 && v <= 3600 }},
		{cell, `diego_rep_container_creation_seconds_count{outcome="created"}`, func(v float64) bool { return v >= 6 }},
		{cell, `diego_rep_container_creation_seconds_sum{outcome="created"}`, positive},
		{cell, `diego_rep_checks_failed_total{consequence="never_healthy"}`, func(v float64) bool { return v >= 3 }},
		{cell, `diego_rep_volumes_waiting`, is(0)},
		{cell, `diego_container_cpu_seconds_total{colour="blue",instance_id="0",source_id="figures"}`, positive},
		{cell, `diego_container_memory_bytes{colour="blue",instance_id="0",source_id="figures"}`, positive},
		{cell, `diego_container_memory_limit_bytes{colour="blue",instance_id="0",source_id="figures"}`, is(32 << 20)},
		{cell, `diego_container_disk_bytes{colour="blue",instance_id="0",source_id="figures"}`, positive},
		{cell, `diego_container_disk_limit_bytes{colour="blue",instance_id="0",source_id="figures"}`, is(16 << 20)},
		{cell, `diego_container_pids{colour="blue",instance_id="0",source_id="figures"}`, positive},
		{cell, `diego_container_received_bytes_total{colour="blue",instance_id="0",source_id="figures"}`, is(0)}, // checks are made from within
		{cell, `diego_container_sent_bytes_total{colour="blue",instance_id="0",source_id="figures"}`, is(0)},     // checks are made from within
	}
	eventually(t, "all figures are right", func() (bool, error) {
		var wrong []error
		figures := map[*process]map[string]float64{bbs: scrape(t, reader, bbs), cell: scrape(t, reader, cell)}
		for _, e := range expected {
			if v, known := figures[e.at][e.series]; !known || !e.right(v) {
				wrong = append(wrong, fmt.Errorf("%s is %v", e.series, v))
			}
		}
		return len(wrong) == 0, errors.Join(wrong...)
	})
}

// scrape is what a process measures, by the names and labels of the series.
func scrape(t *testing.T, o httpapi.ClientOptions, p *process) map[string]float64 {
	t.Helper()
	status, body := get(t, o, p.URL+"/metrics")
	if status != 200 {
		t.Fatalf("%s answers %d: %s", p.name, status, body)
	}
	figures := map[string]float64{}
	for line := range strings.Lines(body) {
		if series, value, ok := strings.Cut(strings.TrimSpace(line), " "); ok && !strings.HasPrefix(line, "#") {
			figures[series], _ = strconv.ParseFloat(value, 64)
		}
	}
	return figures
}
