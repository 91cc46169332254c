package system_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
)

// newScriptedCell is a cell named cell-1, with a clock of its own, that reports
// to a system.
func newScriptedCell(t *testing.T, providers ...string) (*memcell.Clock, *system, *manager.Manager, *localcell.Cell) {
	t.Helper()
	clock, system := memcell.NewClock(), newSystem(t, 0, nil)
	containers, err := manager.New(t.Context(), manager.Options{
		Backend:  scripted.New(scripted.Options{Now: clock.Now}),
		Capacity: executor.Capacity{MemoryMB: 1024, DiskMB: 4096, Containers: 10}, Dir: t.TempDir(), Now: clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	cell, err := localcell.New(containers, rep.Options{CellID: "cell-1", BBS: system.BBS, RootFSProviders: providers, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	return clock, system, containers, cell
}

func TestAServedCellShowsItsContainersAndLogsAndEvacuates(t *testing.T) {
	clock, _, containers, local := newScriptedCell(t, "host:")
	p := newProcess(t)
	p.serve(t, httpapi.HandlerOptions{Cell: local})
	cell, err := httpapi.NewRemoteCell(httpapi.ClientOptions{Addresses: []string{p.URL}, CellID: "cell-1", AllowPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}

	if list := containers.Reserve(executor.Reservation{GUID: "web", Resources: executor.Resources{MemoryMB: 64}}); len(list) > 0 {
		t.Fatal(list[0].Err)
	}
	must(containers.Initialize("web", executor.Work{RunInfo: executor.RunInfo{
		RootFS: "host:", Action: executor.Action{Run: &executor.RunAction{Path: scripted.Path, Args: []string{"print hello", "warn trouble", "wait forever"}, User: "app"}},
	}}))
	for range 10 {
		containers.Tick(t.Context())
		clock.Advance(time.Second)
	}
	list, err := cell.Containers(t.Context())
	if must(err); len(list) != 1 || list[0].GUID != "web" || list[0].State != executor.Running || list[0].RunInfo != nil {
		t.Fatalf("got containers %+v", list)
	}

	read := func(request rep.LogRequest) (text string, next int64, err error) {
		for chunk, err := range cell.Logs(t.Context(), request) {
			if err != nil {
				return text, next, err
			}
			text, next = text+string(chunk.Data), chunk.Next
		}
		return text, next, nil
	}
	text, next, err := read(rep.LogRequest{ContainerGUID: "web"})
	if must(err); text != "hello\n" || next != 6 {
		t.Errorf("got %q up to %d", text, next)
	}
	text, _, err = read(rep.LogRequest{ContainerGUID: "web", From: 2})
	if must(err); text != "llo\n" {
		t.Errorf("from byte 2: got %q", text)
	}
	text, _, err = read(rep.LogRequest{ContainerGUID: "web", Stream: "stderr"})
	if must(err); text != "trouble\n" {
		t.Errorf("got %q", text)
	}
	if _, _, err := read(rep.LogRequest{ContainerGUID: "no"}); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want ErrNotFound", err)
	}
	if _, _, err := read(rep.LogRequest{ContainerGUID: "web", Stream: "stdin"}); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v, want a validation error", err)
	}
	// Who follows gets what is there at once, and the end when the container
	// is deleted.
	followed := ""
	for chunk, err := range cell.Logs(t.Context(), rep.LogRequest{ContainerGUID: "web", Follow: true}) {
		must(err)
		followed += string(chunk.Data)
		containers.Delete("web")
		for len(containers.List()) > 0 {
			containers.Tick(t.Context())
			clock.Advance(time.Second)
		}
	}
	if followed != "hello\n" {
		t.Errorf("followed %q", followed)
	}

	status, err := cell.Evacuation(t.Context())
	if must(err); !reflect.DeepEqual(status, rep.EvacuationStatus{}) {
		t.Errorf("got %+v", status)
	}
	must(cell.Evacuate(t.Context()))
	status, err = cell.Evacuation(t.Context())
	if must(err); !status.Evacuating || status.Done || !status.BeganAt.Equal(clock.Now()) || !status.Deadline.After(status.BeganAt) {
		t.Errorf("got %+v", status)
	}
	state, err := cell.State(t.Context())
	if must(err); !state.Evacuating || state.ID != "cell-1" {
		t.Errorf("got state %+v", state)
	}
	rejections, err := cell.Perform(t.Context(), auction.Work{CellID: "cell-1", Items: []auction.Item{{Key: auction.Key{GUID: "web", DefinitionID: "v1"}, RootFS: "host:"}}})
	if must(err); len(rejections) != 1 {
		t.Errorf("got rejections %v", rejections)
	}
	must(cell.StopLRP(t.Context(), lrp.Key{ProcessGUID: "web"}, lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-1"}))
	must(cell.CancelTask(t.Context(), "job", "i"))
	inventory, err := cell.Inventory(t.Context())
	if must(err); inventory.CellID != "cell-1" || inventory.Containers == nil {
		t.Errorf("got inventory %+v", inventory)
	}
}

func TestALogSaysWhoseOutputItIs(t *testing.T) {
	clock, system, containers, local := newScriptedCell(t)
	p := newProcess(t)
	p.serve(t, httpapi.HandlerOptions{Cell: local})
	cell, err := httpapi.NewRemoteCell(httpapi.ClientOptions{Addresses: []string{p.URL}, CellID: "cell-1", AllowPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	says := func(source, text string) executor.Action {
		return executor.Action{Run: &executor.RunAction{Path: scripted.Path, Args: []string{"print " + text}, User: "app", LogSource: source}}
	}
	info := executor.RunInfo{RootFS: "host:", LogGUID: "app-7", LogSource: "WEB", MetricsGUID: "metrics-7", Action: executor.Action{
		Serial: &executor.SerialAction{LogSource: "STEP", Actions: []executor.Action{says("", "one"), says("PROXY", "two")}},
	}, Setup: &executor.Action{Run: says("", "zero").Run}}

	static := func(text string) map[string]lrp.MetricTag {
		return map[string]lrp.MetricTag{
			"source_id": {Static: "metrics-7"}, "space": {Static: text}, "n": {Dynamic: executor.MetricTagIndex}, "i": {Dynamic: executor.MetricTagInstanceGUID},
		}
	}
	l := desired("web", 3)
	l.RunInfo, l.MetricTags = info, static("s1")
	if err := system.BBS.Desire(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	job := desiredTask("job", "")
	job.Definition.RunInfo, job.Definition.MetricTags = info, map[string]lrp.MetricTag{"source_id": {Static: "metrics-7"}, "n": {Dynamic: executor.MetricTagIndex}}
	job.Definition.LogGUID = ""
	if err := system.BBS.DesireTask(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	run := func(guid string, info executor.RunInfo, tags map[string]string) {
		t.Helper()
		if list := containers.Reserve(executor.Reservation{GUID: guid, Tags: tags}); len(list) > 0 {
			t.Fatal(list[0].Err)
		}
		if err := containers.Initialize(guid, executor.Work{RunInfo: info}); err != nil {
			t.Fatal(err)
		}
		for range 10 {
			containers.Tick(t.Context())
			clock.Advance(time.Second)
		}
	}
	run("i-1", info, map[string]string{executor.TagLifecycle: executor.LifecycleLRP, executor.TagProcessGUID: "web", executor.TagProcessIndex: "2"})
	run("i-2", job.Definition.RunInfo, map[string]string{executor.TagLifecycle: executor.LifecycleTask, executor.TagTaskGUID: "job", executor.TagTaskAttempt: "1.0"})

	check := func(guid string, want ...string) {
		t.Helper()
		var got []string
		for chunk, err := range cell.Logs(t.Context(), rep.LogRequest{ContainerGUID: guid}) {
			if err != nil {
				t.Fatal(err)
			}
			labels, err := json.Marshal(chunk.Labels)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(labels)+" "+string(chunk.Data))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the log of %s (-want +got):\n%s", guid, diff)
		}
	}
	web := func(source, space string) string {
		return `{"log_guid":"app-7","source":"` + source + `","tags":{"i":"i-1","n":"2","source_id":"metrics-7","space":"` + space + `"},"instance_guid":"i-1","index":2,"stream":"stdout"}`
	}
	check("i-1", web("WEB", "s1")+" zero\n", web("STEP", "s1")+" one\n", web("PROXY", "s1")+" two\n")
	ofJob := func(source string) string {
		return `{"log_guid":"job","source":"` + source + `","tags":{"source_id":"metrics-7"},"instance_guid":"i-2","stream":"stdout"}`
	}
	check("i-2", ofJob("WEB")+" zero\n", ofJob("STEP")+" one\n", ofJob("PROXY")+" two\n")

	// Metric tags change while the instance runs, and its log outlives it.
	tags := static("s2")
	if err := system.BBS.UpdateDeployment(t.Context(), "web", lrp.Update{MetricTags: &tags}); err != nil {
		t.Fatal(err)
	}
	containers.Delete("i-1")
	for range 10 {
		containers.Tick(t.Context())
		clock.Advance(time.Second)
	}
	if _, there := containers.Get("i-1"); there {
		t.Fatal("the container is not deleted")
	}
	check("i-1", web("WEB", "s2")+" zero\n", web("STEP", "s2")+" one\n", web("PROXY", "s2")+" two\n")
}
