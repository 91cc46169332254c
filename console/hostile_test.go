package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/chromium"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// hostile is the text of somebody who would like to run a script on the page, to
// break its lines, or to turn the words beside it around.
const hostile = `<img src=x onerror=alert(1)><script>alert(2)</script>"'&amp;{{1}}${2}` + "\n\t\u202eesrever\u2066\u05d0\u05d1 "

// named is a hostile name of the longest length, and line is one without control
// characters.
func named(what string) string {
	text := what + " " + strings.Repeat(hostile, 10)
	return strings.ToValidUTF8(text[:executor.MaxNameBytes], "")
}

func line(what string) string { return strings.NewReplacer("\n", "", "\t", "").Replace(named(what)) }

// A hostileCell says hostile things, and its first log is cut off.
type hostileCell struct {
	rep.API
	id   string
	logs *atomic.Int64 // how often a log was read
	left *atomic.Bool  // whether it does not answer any more
}

func (c hostileCell) State(context.Context) (auction.CellState, error) {
	if c.left.Load() {
		return auction.CellState{}, errors.New(hostile)
	}
	total := executor.Capacity{MemoryMB: 4096, DiskMB: 4096, Containers: 100, Extra: map[string]int64{"gpu": 3}}
	return auction.CellState{ID: c.id, Zone: named("zone"), Total: total, Remaining: total, Evacuating: true}, nil
}

func (c hostileCell) Evacuation(context.Context) (rep.EvacuationStatus, error) {
	if c.left.Load() {
		return rep.EvacuationStatus{}, errors.New(hostile)
	}
	return rep.EvacuationStatus{Evacuating: true, BeganAt: time.Now(), Deadline: time.Now().Add(time.Hour), Containers: 5, Waiting: []string{"web/0: " + hostile}}, nil
}

func (c hostileCell) Usages(context.Context) ([]rep.ContainerUsage, error) {
	return []rep.ContainerUsage{{ContainerGUID: named("instance"), ProcessGUID: "web", Domain: line("domain")}}, nil
}

// Logs is one text in two parts, of which the first is cut off before its end.
func (c hostileCell) Logs(ctx context.Context, r rep.LogRequest) iter.Seq2[rep.LogChunk, error] {
	return func(yield func(rep.LogChunk, error) bool) {
		if c.logs.Add(1) == 1 {
			if yield(rep.LogChunk{Next: 6, Data: []byte("first ")}, nil) {
				yield(rep.LogChunk{}, errors.New("the connection is gone"))
			}
			return
		}
		text := "first second " + hostile
		if yield(rep.LogChunk{Next: int64(len(text)), Data: []byte(text[r.From:])}, nil) {
			<-ctx.Done()
		}
	}
}

// A hostileAuctioneer would put all work on one cell.
type hostileAuctioneer struct{ auction.API }

func (hostileAuctioneer) Plan(_ context.Context, items ...auction.Item) (r auction.Result, err error) {
	for i := range items {
		choice := auction.Choice{CellID: named("cell"), Score: auction.Score{Memory: 0.5}}
		r.Placements = append(r.Placements, auction.Placement{Item: &items[i], Choice: choice, RunnerUp: choice})
	}
	return r, nil
}

func TestTextOfOthersStaysTextOnEveryPage(t *testing.T) {
	chromium.Need(t)
	api, err := bbs.New(bbs.Options{Store: memstore.New(nil), Effects: ignored{}, LRPs: lrp.Policy{Restart: lrp.RestartPolicy{ImmediateRestarts: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	must := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	cell, annotation := named("cell"), strings.ToValidUTF8(strings.Repeat(hostile, 1000)[:executor.MaxAnnotationBytes], "")
	announce := func(id string) error {
		return api.Announce(ctx, bbs.CellPresence{
			CellID: id, Address: "https://127.0.0.1:1", Zone: named("zone"), PlacementTags: []string{named("tag")},
			OptionalPlacementTags: []string{named("other tag")}, RootFSProviders: []string{"preloaded:" + hostile}, VolumeDrivers: []string{hostile},
		}, "owner", time.Hour)
	}
	must(announce(cell), announce("__proto__"), announce(".."))

	run := executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", Args: []string{hostile}, User: "vcap"}}}
	asked := lrp.Definition{RunInfo: run}
	asked.MemoryMB = 64
	settings := lrp.Settings{
		Instances: 3, Annotation: annotation, Labels: map[string]string{"team": "blog", strings.Repeat("k", 128): strings.Repeat("v", 128)},
		Routes: lrp.Routes{named("routes"): json.RawMessage(`[{"hostnames": 5}, null, {"hostname": {"toString": 1}}, ` + strconv.Quote("<img src=x onerror=alert(3)>") + `]`)},
	}
	domain, definition, address := line("domain"), named("definition"), named("address")
	must(api.CreateDeployment(ctx, lrp.DeploymentDefinition{ProcessGUID: "web", Domain: domain, DefinitionID: definition, Definition: asked, Settings: settings}),
		api.CreateDeployment(ctx, lrp.DeploymentDefinition{ProcessGUID: "constructor", Domain: "__proto__", DefinitionID: "__proto__", Definition: asked, Settings: lrp.Settings{Instances: 1}}))
	key := lrp.InstanceKey{InstanceGUID: named("instance"), CellID: cell}
	must(api.ClaimLRP(ctx, "web", 0, lrp.Claim{DefinitionID: definition, Instance: key, Reason: "score 0.2580, " + hostile + "; parts against <img/src=x/onerror=alert(4)>: memory in use 0.5/1e999, tasks on the cell 1/--"}),
		api.StartLRP(ctx, "web", 0, lrp.Start{DefinitionID: definition, Domain: domain, Instance: key, Zone: named("zone"), NetInfo: lrp.NetInfo{Address: address}}))
	key.InstanceGUID = named("crashed")
	must(api.ClaimLRP(ctx, "web", 1, lrp.Claim{DefinitionID: definition, Instance: key}),
		api.CrashLRP(ctx, "web", 1, lrp.Crash{DefinitionID: definition, Domain: domain, Instance: key, Reason: annotation}),
		api.FailActualLRP(ctx, lrp.Key{ProcessGUID: "web", Index: 2, DefinitionID: definition, Domain: domain}, lrp.PlacementError{Reason: lrp.RejectedByCell, Detail: "of 1 cell 1 " + annotation}))
	second := named("second definition")
	update := lrp.Update{DefinitionID: &second, Definition: &asked}
	must(api.UpdateDeployment(ctx, "web", update))

	must(api.DesireTask(ctx, task.Desire{GUID: "job", Domain: domain, Definition: task.Definition{RunInfo: run, Annotation: annotation, Labels: settings.Labels}}),
		api.DesireTask(ctx, task.Desire{GUID: "failed", Domain: domain, Definition: task.Definition{RunInfo: run}}))
	if _, err := api.StartTask(ctx, "job", task.Start{CellID: cell, InstanceGUID: named("task")}); err != nil {
		t.Fatal(err)
	}
	must(api.CompleteTask(ctx, "job", task.Complete{CellID: cell, InstanceGUID: named("task"), Result: annotation}), api.FailTask(ctx, "failed", annotation))

	logs, left := new(atomic.Int64), new(atomic.Bool)
	page := show(t, httpapi.HandlerOptions{BBS: api, Auctioneer: hostileAuctioneer{}}, httpapi.OperatorRole, func(p bbs.CellPresence) (rep.API, error) {
		return hostileCell{id: p.CellID, logs: logs, left: left}, nil
	})
	page.Await("diego.stats().status === 'live' && diego.stats().instances >= 4")

	for _, c := range []struct {
		address string   // the parts of an array of it, in JavaScript
		shows   []string // scripts that must become true
	}{
		{"'processes'", []string{"main.textContent.includes('onerror=alert(1)')", "main.textContent.includes('__proto__')", "main.textContent.includes('team=blog')"}},
		{"'fleet'", []string{"main.querySelector('#fleet-table').textContent.includes('onerror=alert(1)')", "main.querySelector('.recent').textContent.includes('onerror=alert(1)')"}},
		{"'process', 'web', '0'", []string{"main.textContent.includes('onerror=alert(3)')", "main.querySelector('#difference') !== null", "main.querySelector('pre.log').textContent.includes('first second <img')", "!main.querySelector('pre.log').textContent.includes('first first')"}},
		{"'process', 'web', '1'", []string{"main.textContent.includes('crashed, waits')", "main.textContent.includes('Last crash')"}},
		{"'process', 'web', '2'", []string{"main.textContent.includes('Not placed')"}},
		{"'process', 'constructor'", []string{"main.textContent.includes('64 MiB')", "main.textContent.includes('Definition __proto__')"}},
		{"'why'", []string{"main.textContent.includes('web/2')"}},
		{"'why', 'web', '0'", []string{"main.querySelector('#timeline').textContent.includes('onerror=alert(1)')", "main.querySelector('.against').textContent.includes('onerror=alert(4)')", "main.querySelector('#fit-answer').textContent.includes('All 20 would fit')"}},
		{"'why', 'web', '1'", []string{"main.querySelector('#timeline').textContent.includes('crashed: ')"}},
		{"'why', 'web', '2'", []string{"main.querySelector('#timeline').textContent.includes('of 1 cell')"}},
		{"'tasks'", []string{"main.textContent.includes('onerror=alert(1)')"}},
		{"'task', 'job'", []string{"main.textContent.includes('onerror=alert(1)')", "main.textContent.includes('Result')"}},
		{"'task', 'failed'", []string{"main.textContent.includes('Failed because')"}},
		{"'cells'", []string{"main.textContent.includes('onerror=alert(1)')", "main.textContent.includes('draining')"}},
		{"'cell', CELL", []string{"main.textContent.includes('Optional tags')", "main.querySelector('#drain').textContent.includes('5 containers left')", "main.querySelector('#drain li').textContent.includes('onerror=alert(1)')"}},
		{"'cell', '__proto__'", []string{"main.textContent.includes('Optional tags')"}},
		{"'cell', '..'", []string{"main.querySelector('#drain').textContent.includes('5 containers left')"}},
	} {
		parts, err := json.Marshal(cell)
		must(err)
		// A page that is opened anew says when it is ready.
		page.Eval("location.hash = '#/health'", nil)
		page.Await("document.getElementById('main').dataset.page === 'health'")
		page.Eval(fmt.Sprintf("delete document.getElementById('main').dataset.ready; location.hash = '#/' + [%s].map(encodeURIComponent).join('/')", strings.ReplaceAll(c.address, "CELL", string(parts))), nil)
		page.Await(fmt.Sprintf("document.getElementById('main').dataset.page === [%s][0] && document.getElementById('main').dataset.ready === 'true'", strings.ReplaceAll(c.address, "CELL", "''")))
		for _, script := range c.shows {
			page.Await("(main => " + script + ")(document.getElementById('main'))")
		}
		var wrong []string
		page.Eval(`(main => {
			const wrong = [...main.querySelectorAll('img, script, iframe, object, [onerror]')].map(e => e.outerHTML);
			if (document.documentElement.scrollWidth > innerWidth) wrong.push('the page is ' + document.documentElement.scrollWidth + ' px wide');
			if (main.textContent.includes('This page cannot be shown')) wrong.push(main.textContent);
			return wrong;
		})(document.getElementById('main'))`, &wrong)
		// What an action says it will do is one line of ours.
		var effects []string
		page.Eval(`(async () => {
			const said = [], turn = () => new Promise(done => requestAnimationFrame(() => setTimeout(done)));
			for (const button of document.querySelectorAll('#main [data-action]:enabled')) {
				button.click();
				const box = document.getElementById('confirm');
				while (!box.open) await turn(); // the test has its patience
				said.push(box.textContent);
				if (box.querySelector('img, script')) said.push('\n');
				document.getElementById('confirm-no').click();
				await turn();
			}
			return said;
		})()`, &effects)
		for _, effect := range effects {
			if strings.ContainsAny(effect, "\n\t\u202e\u2066") {
				wrong = append(wrong, "the question "+strconv.Quote(effect))
			}
		}
		for _, fault := range append(wrong, page.Faults()...) {
			t.Errorf("%s: %s", c.address, fault)
		}
	}

	page.Eval("location.hash = '#/health'", nil)
	page.Await("document.querySelectorAll('.uplot canvas').length === 3")
	page.Eval("document.querySelectorAll('.uplot canvas').forEach(c => c.id = 'light')", nil)
	page.Dark() // the charts are made anew
	page.Await("document.querySelectorAll('.uplot canvas').length === 3 && document.getElementById('light') === null")
	for _, fault := range page.Faults() {
		t.Error(fault)
	}

	// Even a fault of the page itself makes no HTML of a text.
	var made string
	page.Eval("(() => { try { document.getElementById('main').innerHTML = '<b>x</b>'; return 'HTML' } catch (fault) { return fault.name } })()", &made)
	if page.Faults(); made != "TypeError" {
		t.Errorf("a text became %s", made)
	}

	// Of a cell that has left, the page says what is still recorded there.
	parts, err := json.Marshal(cell)
	must(err)
	page.Eval(fmt.Sprintf("location.hash = '#/cell/' + encodeURIComponent(%s)", parts), nil)
	page.Await("document.getElementById('drain').textContent.includes('5 containers left')")
	left.Store(true)
	page.Await("document.getElementById('drain').textContent.includes('1 container left')")
	must(api.RemoveLRP(ctx, "web", 0, lrp.Remove{DefinitionID: definition, Instance: lrp.InstanceKey{InstanceGUID: named("instance"), CellID: cell}}))
	page.Await("document.getElementById('drain').textContent.includes('the cell is empty')")
}

func TestSearchesTakeLabels(t *testing.T) {
	chromium.Need(t)
	api, err := bbs.New(bbs.Options{Store: memstore.New(nil), Effects: ignored{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	run := executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}}}
	for guid, labels := range map[string]map[string]string{"front": {"team": "blog", "tier": "web"}, "back": {"team": "blog"}, "shop": {"team": "shop"}} {
		if err := errors.Join(
			api.CreateDeployment(ctx, lrp.DeploymentDefinition{ProcessGUID: guid, Domain: "apps", DefinitionID: "v1", Definition: lrp.Definition{RunInfo: run}, Settings: lrp.Settings{Instances: 1, Labels: labels}}),
			api.DesireTask(ctx, task.Desire{GUID: guid, Domain: "apps", Definition: task.Definition{RunInfo: run, Labels: labels}}),
		); err != nil {
			t.Fatal(err)
		}
	}
	page := show(t, httpapi.HandlerOptions{BBS: api}, httpapi.ConsumerRole, func(bbs.CellPresence) (rep.API, error) { return nil, errors.New("no cell") })
	page.Await("diego.stats().status === 'live' && diego.stats().instances === 3")
	find := func(text string) {
		page.Eval(fmt.Sprintf("(s => { s.value = %q; s.dispatchEvent(new Event('input', { bubbles: true })) })(document.querySelector('input[type=search]'))", text), nil)
	}
	find("team=blog")
	page.Await("document.querySelector('.found').textContent.includes('2 processes')")
	for _, table := range []string{"processes", "tasks"} {
		page.Eval("location.hash = '#/"+table+"'", nil)
		rows := fmt.Sprintf("[...document.querySelectorAll('#%s-table tbody th')].map(e => e.textContent.trim()).sort().join()", table)
		page.Await(rows + " === 'back,front,shop'")
		for text, want := range map[string]string{"team=blog": "back,front", "team=blog,!tier": "back", "tier": "front", "hop": "shop", "team!=blog": "shop"} {
			find(text)
			page.Await(fmt.Sprintf("%s === %q", rows, want))
		}
		find("")
		page.Await(rows + " === 'back,front,shop'")
	}
	// A label that changes is seen at once.
	labels := map[string]string{"team": "blog"}
	if err := api.UpdateDeployment(ctx, "shop", lrp.Update{Labels: &labels}); err != nil {
		t.Fatal(err)
	}
	page.Eval("location.hash = '#/processes'", nil)
	page.Await("document.querySelectorAll('#processes-table tbody th').length === 3")
	find("team=blog")
	page.Await("document.querySelectorAll('#processes-table tbody th').length === 3 && !document.querySelector('#processes-table').textContent.includes('team=shop')")
	for _, fault := range page.Faults() {
		t.Error(fault)
	}
}
