package system_test

import (
	"errors"
	"reflect"
	"testing"
	"time"

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

func TestAServedCellShowsItsContainersAndLogsAndEvacuates(t *testing.T) {
	clock := memcell.NewClock()
	containers, err := manager.New(t.Context(), manager.Options{
		Backend:  scripted.New(scripted.Options{Now: clock.Now}),
		Capacity: executor.Capacity{MemoryMB: 1024, DiskMB: 4096, Containers: 10}, Dir: t.TempDir(), Now: clock.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := rep.New(rep.Options{CellID: "cell-1", BBS: newSystem(t, 0, nil).BBS, Executor: containers, RootFSProviders: []string{"host:"}, Now: clock.Now})
	if err != nil {
		t.Fatal(err)
	}
	p := newProcess(t)
	p.serve(t, httpapi.HandlerOptions{Cell: localcell.Cell{Rep: r, Manager: containers}})
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
	if must(err); len(list) != 1 || list[0].GUID != "web" || list[0].State != executor.Running {
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
