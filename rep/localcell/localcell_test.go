package localcell_test

import (
	"context"
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
