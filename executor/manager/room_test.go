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
)

// A fullBackend has no room for a container while a directory holds something.
type fullBackend struct {
	executor.ContainerBackend
	dir  string
	full atomic.Int32 // how often it had none
}

// ownDisk begins the guids of containers whose own disk is full.
const ownDisk = "own-disk"

func (b *fullBackend) Create(ctx context.Context, s executor.ContainerSpec) (executor.Endpoint, error) {
	if entries, err := os.ReadDir(b.dir); err != nil || len(entries) > 0 {
		b.full.Add(1)
		err := error(&os.PathError{Op: "mkdir", Path: s.GUID, Err: syscall.ENOSPC})
		if s.GUID != ownDisk {
			err = &executor.BackendError{Kind: executor.ErrNoRoom, GUID: s.GUID, Cause: err}
		}
		return executor.Endpoint{}, err
	}
	if strings.HasPrefix(s.GUID, "broken") {
		return executor.Endpoint{}, errors.New("broken")
	}
	return b.ContainerBackend.Create(ctx, s)
}

func TestAContainerWithoutRoomCostsDownloadsThatNobodyUsesOnlyIfTheDiskOfTheCellIsFull(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { tgz(w, "f", "x") }))
	defer server.Close()
	b := new(fullBackend)
	h := newHost(t, func(o *manager.Options) {
		b.ContainerBackend, b.dir = o.Backend, filepath.Join(o.Dir, "cache")
		o.Backend = b
	})
	withDownload := func(w *manager.Work) {
		w.CachedDependencies = []executor.CachedDependency{{Name: "tools", From: server.URL, To: "/tools", CacheKey: "tools"}}
	}
	nothing := func(*manager.Work) {}
	for _, test := range []struct {
		guid    string
		edit    func(*manager.Work)
		refused int32
		reason  string
	}{
		{"keeps-what-is-in-use", withDownload, 1, "no space left"},
		{ownDisk, nothing, 1, "no space left"},
		{"makes-room", nothing, 1, ""},
		{"kept-again", withDownload, 1, "no space left"},
		{"broken-then", nothing, 1, "no space left on device\nbroken"},
	} {
		before := b.full.Load()
		h.launch(test.guid, with(work(sh("true")), test.edit))
		r := h.await(test.guid, executor.Completed).RunResult
		if refused := b.full.Load() - before; r.Failed != (test.reason != "") || !strings.Contains(r.FailureReason, test.reason) || refused != test.refused {
			t.Errorf("%s was refused %d times and ended with %+v", test.guid, refused, r)
		}
		h.remove(test.guid)
	}
}
