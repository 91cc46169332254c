package tenant_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

func TestWhatCannotBeSetAsideStaysWhereItIs(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "c")
	must(t, os.MkdirAll(tree, 0o755), os.WriteFile(filepath.Join(dir, "in-the-way"), nil, 0o600))
	immutable(t, tree) // such a directory cannot be renamed either
	trash := tenant.Trash{Dir: filepath.Join(dir, "lost")}
	if err := trash.Remove(context.Background(), tree); err == nil || errors.Is(err, executor.ErrSetAside) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(tree); err != nil {
		t.Error(err)
	}
	blocked := tenant.Trash{Dir: filepath.Join(dir, "in-the-way", "lost")}
	if err := blocked.Remove(context.Background(), tree); err == nil || errors.Is(err, executor.ErrSetAside) {
		t.Errorf("without a place for it: %v", err)
	}
}

func TestWhatTakesLongToRemoveIsSetAsideAndAccountedForUntilItIsSwept(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "c")
	must(t, os.MkdirAll(tree, 0o755), os.WriteFile(filepath.Join(tree, "file"), make([]byte, 1<<20), 0o600))
	trash := tenant.Trash{Dir: filepath.Join(dir, "lost")}
	ctx := context.Background()
	if all, err := trash.Aside(ctx); len(all) > 0 || err != nil {
		t.Errorf("before, set aside are %v, %v", all, err)
	}
	hurry := tenant.Hurry{Limit: -time.Second}
	if err := trash.RemoveBefore(ctx, tree, hurry.End()); !errors.Is(err, executor.ErrSetAside) {
		t.Errorf("the error is %v", err)
	}
	if _, err := os.Stat(tree); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
	if all, err := trash.Aside(ctx); len(all) != 1 || err != nil || all[0].Bytes < 1<<20 || all[0].Err != nil {
		t.Errorf("set aside are %+v, %v", all, err)
	}
	if left, err := trash.Sweep(ctx); len(left) > 0 || err != nil {
		t.Errorf("left are %v, %v", left, err)
	}
	must(t, os.MkdirAll(filepath.Join(tree, "full"), 0o755))
	if err := trash.RemoveBefore(ctx, tree, time.Now().Add(time.Hour)); err != nil {
		t.Errorf("with enough time: %v", err)
	}
}

func TestADeletionThatIsCutShortSetsNothingAside(t *testing.T) {
	dir := t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "c/full"), 0o755))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	trash := tenant.Trash{Dir: filepath.Join(dir, "lost")}
	if err := trash.Remove(ctx, filepath.Join(dir, "c")); !errors.Is(err, context.Canceled) || errors.Is(err, executor.ErrSetAside) {
		t.Errorf("the error is %v", err)
	}
	if left, err := trash.Sweep(context.Background()); len(left) > 0 || err != nil {
		t.Errorf("set aside are %v, %v", left, err)
	}
}
