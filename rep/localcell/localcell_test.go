package localcell_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
)

// silent is a BBS that nobody asks anything.
type silent struct{ rep.BBS }

func newManager(t *testing.T) *manager.Manager {
	t.Helper()
	m, err := manager.New(context.Background(), manager.Options{Backend: scripted.New(scripted.Options{}), Capacity: executor.Capacity{MemoryMB: 64, DiskMB: 64}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestACellIsARepOverItsManager(t *testing.T) {
	m := newManager(t)
	cell, err := localcell.New(m, rep.Options{CellID: "cell-1", BBS: silent{}})
	if err != nil || cell.Manager != m {
		t.Fatalf("got %+v, %v", cell, err)
	}
	if s, err := cell.State(t.Context()); err != nil || s.ID != "cell-1" || s.Total.MemoryMB != 64 {
		t.Errorf("its state is %+v, %v", s, err)
	}
}

func TestContainersAreListedWithoutWhatRunsInThem(t *testing.T) {
	m := newManager(t)
	cell, err := localcell.New(m, rep.Options{CellID: "cell-1", BBS: silent{}})
	if err != nil {
		t.Fatal(err)
	}
	if list := m.Reserve(executor.Reservation{GUID: "i-1", Tags: map[string]string{executor.TagDomain: "apps"}}); len(list) > 0 {
		t.Fatal(list[0].Err)
	}
	work := executor.Work{RunInfo: executor.RunInfo{
		RootFS: "host:", Env: []executor.EnvVar{{Name: "PASSWORD", Value: strings.Repeat("hunter2", 10_000)}},
		Action:             executor.Action{Run: &executor.RunAction{Path: "x", User: "u", Args: []string{"--token=hunter2"}}},
		VolumeMountedFiles: []executor.File{{Path: "f", Content: strings.Repeat("x", executor.MaxFilesBytes)}},
	}}
	if err := m.Initialize("i-1", work); err != nil {
		t.Fatal(err)
	}
	list, err := cell.Containers(t.Context())
	if err != nil || len(list) != 1 || list[0].GUID != "i-1" || list[0].State != executor.Initializing || list[0].Tags[executor.TagDomain] != "apps" {
		t.Fatalf("got %+v, %v", list, err)
	}
	answer, err := json.Marshal(list)
	if err != nil || len(answer) > 1024 || strings.Contains(string(answer), "hunter2") {
		t.Errorf("the answer has %d bytes, want at most 1024 without secrets: %.2000s, %v", len(answer), answer, err)
	}
	if kept, _ := m.Get("i-1"); kept.RunInfo == nil || len(kept.RunInfo.Env) != 1 {
		t.Errorf("the manager has lost what runs in it: %+v", kept.RunInfo)
	}
}

func TestACellWithoutItsPartsIsRefused(t *testing.T) {
	m := newManager(t)
	for field, c := range map[string]struct {
		manager *manager.Manager
		options rep.Options
	}{
		"manager":  {nil, rep.Options{CellID: "cell-1", BBS: silent{}}},
		"executor": {m, rep.Options{CellID: "cell-1", BBS: silent{}, Executor: newManager(t)}},
		"bbs":      {m, rep.Options{CellID: "cell-1"}},
		"cell_id":  {m, rep.Options{BBS: silent{}}},
	} {
		var invalid *executor.ValidationError
		if cell, err := localcell.New(c.manager, c.options); cell != nil || !errors.As(err, &invalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: got %v, %v", field, cell, err)
		}
	}
}
