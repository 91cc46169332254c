package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/internal/chromium"
	"github.com/diegosdk/diego/internal/daemon"
)

// A viewer looks at the console of a fleet in a browser.
type viewer struct {
	*chromium.Page
	t *testing.T
}

// view opens the console by the link that diegoctl prints.
func view(t *testing.T, data string) viewer {
	t.Helper()
	page := chromium.Open(t)
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	diegoctl := filepath.Join(filepath.Dir(path), "diegoctl")
	if output, err := exec.Command("go", "build", "-o", diegoctl, "../diegoctl").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	cmd := exec.Command(diegoctl, "--data", data, "console", "-o", "json")
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := cmd.Wait(); err != nil {
			t.Errorf("diegoctl console ends with %v", err)
		}
	})
	var printed struct{ Link string }
	if err := json.NewDecoder(out).Decode(&printed); err != nil {
		t.Fatal(err)
	}
	page.Visit(printed.Link)
	return viewer{page, t}
}

// api makes a call of the API, as the page does.
func (v viewer) api(call, body string) {
	v.t.Helper()
	v.Eval(fmt.Sprintf("import(new URL('api.js', document.baseURI)).then(api => api.act('v1/bbs/%s', %s, crypto.randomUUID())).then(() => true)", call, body), nil)
}

// opens goes to a page and waits until its first data are drawn.
func (v viewer) opens(parts ...string) {
	v.t.Helper()
	v.Eval(fmt.Sprintf("delete document.getElementById('main')?.dataset.ready; location.hash = '#/%s'", strings.Join(parts, "/")), nil)
	v.Await(fmt.Sprintf("document.getElementById('main').dataset.page === '%s' && document.getElementById('main').dataset.ready === 'true'", parts[0]))
}

// reads waits until a part of the page has texts.
func (v viewer) reads(selector string, texts ...string) {
	v.t.Helper()
	for _, text := range texts {
		v.Await(fmt.Sprintf("[...document.querySelectorAll(%s)].some(e => e.textContent.includes(%s))", strconv.Quote(selector), strconv.Quote(text)))
	}
}

// does presses the button of an action, reads what it will do, and says yes.
func (v viewer) does(action, effect, done string) {
	v.t.Helper()
	v.Await(fmt.Sprintf("(b => b && !b.disabled && (b.click(), true))(document.querySelector('[data-action=%s]'))", action))
	v.reads("#confirm[open] #confirm-effect", effect)
	v.Eval("document.getElementById('confirm-yes').click()", nil)
	v.Await("!document.getElementById('confirm').open || Boolean(document.getElementById('problems'))")
	v.reads("#status", done)
}

// well checks that nothing has gone wrong on the pages so far.
func (v viewer) well() {
	v.t.Helper()
	for _, fault := range v.Faults() {
		// The output of a container that has just ended is not there any more.
		if !strings.Contains(fault, "a status of 404") {
			v.t.Error(fault)
		}
	}
}

// hostile is the text of somebody who would like to run a script on the page.
const hostile = `<img src=x onerror=alert(1)><script>alert(2)</script>\"'&{{1}}`

// script is a definition of a process that runs one in a shell.
func script(text string, memory int) string {
	return fmt.Sprintf(`{"memory_mb": %d, "disk_mb": 16, "root_fs": "host:", "action": {"run": {"path": "/bin/sh", "args": ["-c", %s], "user": "root"}}}`, memory, strconv.Quote(text))
}

func TestOperatorsSeeAFleetInABrowserAndWorkOnIt(t *testing.T) {
	needRealContainers(t)
	data := t.TempDir()
	p := start(t, "--data", data, "--backend", daemon.RealBackend, "--task-expire-completed", "1h") // a slow machine reads of tasks that ended long ago
	p.wait("3 running")
	v := view(t, data)

	// Crashes are seen happening, until the fourth has to wait.
	v.opens("fleet")
	v.Await("diego.stats().cells === 3 && diego.stats().instances === 3 && diego.stats().status === 'live'")
	v.reads("#fleet-table", "cell-1", "cell-2", "cell-3")
	for crash := 1; crash <= 4; crash++ {
		ask(t, "POST", p.address(2)+"/exit/3")
		p.wait("sample/2", "crashed: ", fmt.Sprintf("(crash %d", crash))
		v.reads(".recent", "exit status 3")
		if crash < 4 {
			p.wait("sample/2", fmt.Sprintf("restarted after crash %d: runs on", crash))
		}
	}
	v.Eval("document.getElementById('fleet-canvas').focus()", nil)
	v.Press("ArrowRight")
	v.reads("#tip:not([hidden])", "cell-")
	v.Press("Enter")
	v.Await("location.hash.startsWith('#/cell/cell-')")
	v.opens("process", "sample", "2")
	v.reads("#main", "exit status 3", "starts again in")
	v.Screenshot("process")
	v.opens("why", "sample", "2")
	v.reads("#timeline", "exit status 3", "cell-", "memory in use")
	v.reads("#fit-answer", "would")
	v.Screenshot("why")
	v.opens("process", "sample")
	v.does("restart", "All 3 instances of sample are replaced", "sample is being restarted.")
	v.reads("[aria-label=Revisions]", "restart")
	v.well()

	// Text of others stays text.
	v.api("create_deployment", fmt.Sprintf(`{"process_guid": "web", "domain": "apps", "update_strategy": "ROLLING", "instances": 3, "annotation": "%s", "routes": {"%[1]s": [{"hostname": "%[1]s"}]},
		"rollout_policy": {"canary": 1, "min_healthy_nanoseconds": 6000000000}, "definition_id": "v1", "definition": %s}`, hostile, script(`while :; do echo '<b>bold</b><script>alert(3)</script>'; sleep 1; done`, 32)))
	v.api("create_deployment", `{"process_guid": "huge", "domain": "apps", "update_strategy": "ROLLING", "instances": 1, "definition_id": "v1", "definition": `+script("sleep 1000", 1<<30)+`}`)
	v.api("desire_task", `{"task_guid": "report", "domain": "apps", "definition": `+strings.TrimSuffix(script(`echo '<img src=x onerror=alert(4)>' >/tmp/result`, 16), "}")+fmt.Sprintf(`, "result_file": "/tmp/result", "annotation": "%s"}}`, hostile))
	v.api("desire_task", `{"task_guid": "long", "domain": "apps", "definition": `+script("sleep 1000", 16)+`}`)
	v.opens("processes")
	v.reads("#processes-table", "web", "huge", "sample")
	v.opens("process", "web", "0")
	v.reads("#main", "3 of 3 desired", "onerror=alert(1)")
	v.reads("pre.log", "<b>bold</b><script>")

	// What may be done to a process.
	v.Eval("(i => { i.value = 4; i.dispatchEvent(new Event('input', { bubbles: true })) })(document.getElementById('instances'))", nil)
	v.does("scale", "web goes from 3 to 4 instances: 1 more start", "web is to have 4 instances.")
	v.reads("#main", "4 of 4 desired")
	container := "[...document.querySelectorAll('dt')].find(e => e.textContent === 'Container').nextElementSibling.textContent"
	var before string
	v.Eval(container, &before)
	v.does("retire", "web/0 is stopped on cell-", "web/0 is being restarted.")
	v.Await(fmt.Sprintf("%s !== %q", container, before))
	v.reads("#main", "4 of 4 desired")
	v.reads("[aria-label=Rollout]", "4 of 4")
	v.api("update_deployment", `{"process_guid": "web", "update": {"definition_id": "v2", "definition": `+script(`while :; do echo second; sleep 1; done`, 32)+`}}`)
	v.reads("[aria-label=Rollout] dt", "From")
	v.does("pause", "The rollout of web to v2 changes no further instance", "The rollout is paused.")
	v.reads("[aria-label=Rollout]", "by an operator")
	v.does("resume", "The rollout of web to v2 goes on.", "The rollout goes on.")
	v.does("confirm", "goes on beyond its 1 canary", "The canary is confirmed.")
	v.does("abort", "web goes back to v1", "web goes back to v1.")
	v.Await("document.querySelector('[data-action=rollback]').closest('tr').textContent.includes('given up')")
	v.does("rollback", "begins a rollout from v1 to v2", "web is rolled back to v2.")
	v.reads("#difference", "action.run.args")
	v.well()

	v.opens("why", "huge", "0")
	v.reads("[aria-label='Why it is nowhere']", "memory", "The nearest is cell-")
	v.Eval("document.getElementById('fit').requestSubmit()", nil)
	v.reads("#fit-answer", "0 of 20 would fit")
	v.opens("why")
	v.reads("#main", "huge/0")

	v.opens("tasks")
	v.reads("#tasks-table", "primes", "report", "long")
	v.opens("task", "report")
	v.reads("#main", "<img src=x onerror=alert(4)>")
	v.opens("task", "long")
	v.reads("#main", "running")

	// What may be done to a cell; a drain is seen finishing, which waits for a task.
	v.opens("cells")
	v.reads("#cells-table", "cell-1", "cell-2", "cell-3")
	v.Screenshot("cells")
	var cell string
	v.Eval("import(new URL('store.js', document.baseURI)).then(m => m.store.fleet.tasks.get('long').cell_id)", &cell)
	v.opens("cell", cell)
	v.does("cordon", cell+" gets no new work", cell+" is cordoned.")
	v.reads(".tag", "cordoned")
	v.does("uncordon", cell+" takes work again.", cell+" takes work again.")
	v.reads(".head", "well")
	v.does("drain", cell+" takes no more work.", cell+" is being drained.")
	v.reads("#drain", "Drain: ")
	v.does("undrain", "The drain of "+cell+" is given up", cell+" is no longer drained.")
	v.reads(".head", "well")
	v.does("drain", cell+" takes no more work.", cell+" is being drained.")
	v.reads("#cell-instances", "No instance is on this cell.")
	v.opens("task", "long")
	v.does("cancel", "The task long completes as failed", "Task long is cancelled.")
	v.reads("#main", "failed")
	v.opens("cell", cell)
	v.Await("/The drain is done|There is no cell of this name now/.test(document.getElementById('main').textContent)")

	v.opens("health")
	v.reads("#main", "this process leads", "ago")
	v.reads("#figures", "commit_seconds_count")
	v.Await("document.querySelectorAll('.uplot canvas').length === 3")
	v.well()
}
