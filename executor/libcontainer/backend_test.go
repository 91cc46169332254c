//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestMain(m *testing.M) {
	if os.Getenv(daemonDir) != "" {
		daemon()
	}
	if os.Getenv(asked) != "" {
		ask()
	}
	if which := os.Getenv(holding); which != "" {
		holdLock(which)
	}
	if os.Getenv(walked) != "" {
		walk()
	}
	if os.Getenv(counted) != "" {
		takeCounted()
	}
	if os.Getenv(identified) != "" {
		identify()
	}
	backendtest.Main(m)
	if sharedImages != "" {
		os.RemoveAll(sharedImages)
	}
}

// sharedImages holds what the backends of all tests unpack: the image of the
// host takes as long as twenty containers.
var sharedImages string

// newBackend is a Backend over dir. At the end of the test nothing is left of
// it, or the test fails.
func newBackend(t testing.TB, o Options) *Backend {
	t.Helper()
	var b *Backend
	t.Cleanup(func() { // after all others
		if b == nil {
			return
		}
		if left := traces(t, b); len(left) != 0 {
			t.Errorf("left behind: %q", left)
		}
		g, err := b.cgroups.Child("x")
		if err != nil {
			t.Fatal(err)
		}
		for _, dir := range g.Dirs() {
			if parent := filepath.Dir(dir); exists(parent) {
				t.Errorf("%s is left", parent)
			}
		}
		for _, dir := range []string{b.mounts, b.states} {
			if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", dir, err)
			}
		}
	})
	b = openBackend(t, o)
	return b
}

// openBackend is a Backend over what may be the Dir of another one, and closed
// at the end of the test.
func openBackend(t testing.TB, o Options) *Backend {
	t.Helper()
	testenv.Root(t)
	if err := os.MkdirAll(o.Dir, 0o711); err != nil {
		t.Fatal(err)
	}
	if sharedImages == "" {
		var err error
		if sharedImages, err = os.MkdirTemp("", "diego-images-"); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(sharedImages, filepath.Join(o.Dir, imagesDir)); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Fatal(err)
	}
	b, err := New(o)
	if errors.Is(err, executor.ErrUnsupported) {
		testenv.Missing(t, "a host for containers", err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		guids, err := b.List(context.Background())
		if err != nil {
			t.Error(err)
		}
		for _, guid := range guids {
			if err := b.Delete(context.Background(), guid); err != nil {
				t.Errorf("clean up: %v", err)
			}
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	for what, missing := range map[string]string{"overlayfs": b.host.overlay, "disks for containers": b.host.disk, "networks for containers": b.host.network} {
		if missing != "" && !o.HostNetwork {
			testenv.Missing(t, what, missing)
		}
	}
	if b.host.ids != "" && !o.SharedIDs {
		testenv.Missing(t, "containers with ids of their own", b.host.ids)
	}
	return b
}

func TestTheBackendKeepsTheContractOfBackends(t *testing.T) {
	testenv.Root(t)
	eachIDs(t, func(t *testing.T, edit func(*Options)) {
		options := func(dir string) Options {
			o := Options{Dir: dir}
			edit(&o)
			return o
		}
		backendtest.Run(t, backendtest.Subject{
			New: func(t *testing.T) executor.ContainerBackend { return newBackend(t, options(t.TempDir())) },
			Restart: func(t *testing.T, old executor.ContainerBackend) executor.ContainerBackend {
				b := old.(*Backend)
				b.network.Close() // as the kernel does when a daemon dies
				if b.ids != nil {
					b.ids.Close()
				}
				return openBackend(t, options(b.options.Dir))
			},
			RootFS: "host:",
			User:   "nobody",
		})
	})
}
