package examples_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/metrics"
	"github.com/diegosdk/diego/internal/testenv"
)

const monitoring = "../docs/monitoring"

// needPrometheus ends the test unless there is a Prometheus.
func needPrometheus(t *testing.T) {
	t.Helper()
	for _, program := range []string{"prometheus", "promtool"} {
		if _, err := exec.LookPath(program); err != nil {
			testenv.Missing(t, program, "install Debian's package prometheus")
		}
	}
}

func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	cmd := exec.Command("promtool", args...)
	cmd.Dir, cmd.Stdin = monitoring, strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil || strings.Contains(string(out), "FAILED") {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func readMonitoring(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(monitoring, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// alerts are the names of the alerts in a file.
func alerts(text string) (names []string) {
	for _, m := range regexp.MustCompile(`(?m)alert(?:: |name=")(\w+)`).FindAllStringSubmatch(text, -1) {
		names = append(names, m[1])
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestAlertsFireForWhatTheySayAndEachIsTested(t *testing.T) {
	rules := alerts(readMonitoring(t, "alerts.yaml"))
	if tested := alerts(readMonitoring(t, "alerts_test.yaml")); len(rules) == 0 || !slices.Equal(rules, tested) {
		t.Errorf("the alerts are %q, and tested are %q", rules, tested)
	}
	needPrometheus(t)
	promtool(t, "", "check", "rules", "alerts.yaml")
	promtool(t, "", "test", "rules", "alerts_test.yaml")
	promtool(t, "", "check", "config", "--syntax-only", "prometheus.yaml")
}

func TestAlertsAndDashboardUseFiguresThatThereAre(t *testing.T) {
	known := map[string]bool{}
	for _, m := range metrics.All {
		known["diego_"+m.Name] = m.Kind != metrics.Histogram
		for _, part := range []string{"bucket", "count", "sum"} {
			known["diego_"+m.Name+"_"+part] = m.Kind == metrics.Histogram
		}
	}
	for _, file := range []string{"alerts.yaml", "alerts_test.yaml", "dashboard.json"} {
		names := regexp.MustCompile(`\bdiego_\w+`).FindAllString(readMonitoring(t, file), -1)
		if len(names) == 0 {
			t.Errorf("%s uses no figure", file)
		}
		for _, name := range names {
			if !known[name] {
				t.Errorf("%s: there is no figure %s", file, name)
			}
		}
	}
}

func TestPanelsOfTheDashboardAreWholeAndUseLabelsThatThereAre(t *testing.T) {
	type grid struct{ X, Y, W, H int }
	var dashboard struct {
		Templating struct{ List []struct{ Name, Type string } }
		Panels     []struct {
			ID          int
			Type, Title string
			GridPos     grid
			Datasource  struct{ UID string }
			Targets     []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readMonitoring(t, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	sources := map[string]bool{}
	for _, v := range dashboard.Templating.List {
		sources["${"+v.Name+"}"] = v.Type == "datasource"
	}
	labels := map[string][]string{}
	for _, m := range metrics.All {
		for _, part := range []string{"", "_bucket", "_count", "_sum"} {
			labels["diego_"+m.Name+part] = append(slices.Clone(m.Labels), "le", "job", "instance")
		}
	}
	matchers := regexp.MustCompile(`\b(diego_\w+)\{([^}]*)\}`)
	label := regexp.MustCompile(`(\w+)\s*[!=]`)
	const columns = 24
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.ID == 0 || p.Title == "" {
			t.Errorf("panel %q has no title, or the id %d of another one", p.Title, p.ID)
		}
		ids[p.ID] = true
		if g := p.GridPos; g.W < 1 || g.H < 1 || g.X < 0 || g.X+g.W > columns {
			t.Errorf("panel %q lies outside of the %d columns: %+v", p.Title, columns, g)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, is := taken[[2]int{x, y}]; is {
					t.Fatalf("panels %q and %q overlap", other, p.Title)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if !sources[p.Datasource.UID] || len(p.Targets) == 0 {
			t.Errorf("panel %q has no targets, or the unknown data source %q", p.Title, p.Datasource.UID)
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			if refs[target.RefID] || target.RefID == "" {
				t.Errorf("panel %q has two targets %q", p.Title, target.RefID)
			}
			refs[target.RefID] = true
			for _, m := range matchers.FindAllStringSubmatch(target.Expr, -1) {
				for _, l := range label.FindAllStringSubmatch(m[2], -1) {
					if !slices.Contains(labels[m[1]], l[1]) {
						t.Errorf("panel %q: %s has no label %s", p.Title, m[1], l[1])
					}
				}
			}
		}
	}
}

// A prometheus scrapes a cluster.
type prometheus struct {
	t   *testing.T
	url string
}

// startPrometheus starts one with the alerts of docs/monitoring, which wait a
// second before they fire. jobs are URLs of daemons.
func startPrometheus(t *testing.T, c *cluster, jobs map[string][]string) *prometheus {
	t.Helper()
	dir := t.TempDir()
	rules := regexp.MustCompile(`for: \w+`).ReplaceAllString(readMonitoring(t, "alerts.yaml"), "for: 1s")
	flags := c.certificate("127.0.0.1", "prometheus", httpapi.ConsumerRole)
	config := "global: {scrape_interval: 500ms, evaluation_interval: 500ms}\nrule_files: [alerts.yaml]\nscrape_configs:\n"
	for _, job := range slices.Sorted(maps.Keys(jobs)) {
		var targets []string
		for _, u := range jobs[job] {
			targets = append(targets, strings.TrimPrefix(u, "https://"))
		}
		config += fmt.Sprintf("  - job_name: %s\n    scheme: https\n    tls_config: {cert_file: %q, key_file: %q, ca_file: %q}\n    static_configs: [{targets: [%s]}]\n",
			job, flags[1], flags[3], flags[5], strings.Join(targets, ", "))
	}
	for name, text := range map[string]string{"alerts.yaml": rules, "prometheus.yaml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := newHost() + ":9090"
	cmd := exec.Command("prometheus", "--config.file="+filepath.Join(dir, "prometheus.yaml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	var log strings.Builder
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("prometheus wrote:\n%s", log.String())
		}
	})
	p := &prometheus{t, "http://" + address}
	eventually(t, "Prometheus is ready", func() (bool, error) {
		answer, err := http.Get(p.url + "/-/ready")
		if err != nil {
			return false, err
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK, nil
	})
	return p
}

// A series is one of a result: its labels, and a time and a value.
type series struct {
	Metric map[string]string `json:"metric"`
	Value  [2]any            `json:"value"`
}

// ask is the result of a query.
func (p *prometheus) ask(query string) ([]series, error) {
	answer, err := http.Get(p.url + "/api/v1/query?query=" + url.QueryEscape(query))
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var a struct {
		Error string `json:"error"`
		Data  struct {
			Result []series `json:"result"`
		} `json:"data"`
	}
	if err := json.NewDecoder(answer.Body).Decode(&a); err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, fmt.Errorf("%s: %s", query, a.Error)
	}
	return a.Data.Result, nil
}

// await asks until there are so many results.
func (p *prometheus) await(query string, want int) {
	p.t.Helper()
	eventually(p.t, query, func() (bool, error) {
		found, err := p.ask(query)
		if err == nil && len(found) != want {
			err = fmt.Errorf("it has the results %v, want %d", found, want)
		}
		return err == nil, err
	})
}

func TestPrometheusSeesAFleetAndTheLossOfACell(t *testing.T) {
	needPrometheus(t)
	c := newCluster(t, "sqlite:"+filepath.Join(t.TempDir(), "diego.db"), 1, 0)
	for _, id := range []string{"cell-1", "cell-2", "cell-3"} {
		c.startCell(id)
	}
	bbs, cells := c.bbs[c.bbsHosts[0]], []string{}
	for _, p := range c.cells {
		cells = append(cells, p.URL)
	}
	p := startPrometheus(t, c, map[string][]string{"diego-bbs": {bbs.URL}, "diego-cell": cells})
	c.desire(c.app("web", 3, "serve"))
	p.await("up == 1", 4)
	p.await("diego_cells_present == 3", 1)
	p.await("diego_lrps_desired == 3 and diego_lrps_missing == 0", 1)
	p.await(`sum(diego_rep_containers{state="RUNNING"}) == 3`, 1)
	// Those left out look back for 5 min, in which a busy machine was slow once.
	p.await(`ALERTS{alertstate="firing", alertname!~"DiegoCallsFail|DiegoCallsSlow|DiegoCommitsSlow"}`, 0)

	reader := c.clientOptions(httpapi.ConsumerRole)
	for _, daemon := range []*process{bbs, c.cells["cell-1"]} {
		_, page := get(t, reader, daemon.URL+"/metrics")
		promtool(t, page, "check", "metrics")
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readMonitoring(t, "dashboard.json")), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			if _, err := p.ask(target.Expr); err != nil {
				t.Errorf("panel %q: %v", panel.Title, err)
			}
		}
	}

	began := time.Now()
	c.cells["cell-3"].kill()
	p.await(`ALERTS{alertname="DiegoCellsLost", alertstate="firing"}`, 1)
	t.Logf("the loss of a cell was an alert after %v", time.Since(began).Round(time.Second))
	p.await("diego_cells_present == 2", 1)
	p.await("diego_lrps_missing == 0", 1)
	c.startCell("cell-4")
	p.await(`ALERTS{alertname="DiegoCellsLost", alertstate="firing"}`, 0)
}
