package manager_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/testenv"
)

// A fullBackend has no room for a container while a directory holds something.
type fullBackend struct {
	executor.ContainerBackend
	dir  string
	full atomic.Int32 // how often it had none
}

func (b *fullBackend) Create(ctx context.Context, s executor.ContainerSpec) (executor.Endpoint, error) {
	if entries, err := os.ReadDir(b.dir); err != nil || len(entries) > 0 {
		b.full.Add(1)
		return executor.Endpoint{}, &os.PathError{Op: "mkdir", Path: s.GUID, Err: syscall.ENOSPC}
	}
	return b.ContainerBackend.Create(ctx, s)
}

func TestAContainerWithoutRoomCostsDownloadsThatNobodyUsesOnlyIfTheDiskOfTheCellIsFull(t *testing.T) {
	testenv.Root(t)
	at := t.TempDir()
	if err := syscall.Mount("tmpfs", at, "tmpfs", 0, "size=16m"); err != nil {
		testenv.Missing(t, "a small file system", err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(at, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tgz(w, "f", "x") }))
	defer server.Close()
	b := new(fullBackend)
	h := newHost(t, func(o *manager.Options) {
		o.Dir = filepath.Join(at, "cell")
		b.ContainerBackend, b.dir = o.Backend, filepath.Join(o.Dir, "cache")
		o.Backend = b
	})
	run := func(guid string, edit func(*manager.Work)) executor.RunResult {
		h.launch(guid, with(work(sh("true")), edit))
		defer h.remove(guid)
		return h.await(guid, executor.Completed).RunResult
	}
	withDownload := func(w *manager.Work) {
		w.CachedDependencies = []executor.CachedDependency{{Name: "tools", From: server.URL, To: "/tools", CacheKey: "tools"}}
	}
	nothing := func(*manager.Work) {}
	if r := run("first", withDownload); !strings.Contains(r.FailureReason, "no space left") || b.full.Load() != 1 {
		t.Errorf("what is in use was given up: %+v", r)
	}
	if r := run("with-a-disk", nothing); !r.Failed || b.full.Load() != 2 {
		t.Errorf("a container whose own disk is full, with room in the cell, after %d refusals: %+v", b.full.Load(), r)
	}
	if err := os.WriteFile(filepath.Join(at, "large"), make([]byte, 17<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("17 MiB have room: %v", err)
	}
	if r := run("second", nothing); r.Failed || b.full.Load() != 3 {
		t.Errorf("after %d refusals: %+v", b.full.Load(), r)
	}
}
