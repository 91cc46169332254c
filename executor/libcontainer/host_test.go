//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
	"github.com/diegosdk/diego/internal/testenv"
)

// probing is the stage of a probingDaemon.
const probing = "probing"

// probingDaemon says why there can be no containers.
func probingDaemon() {
	b, err := New(Options{Dir: os.Getenv(daemonDir)})
	fmt.Printf("unsupported %v: %v\n", errors.Is(err, executor.ErrUnsupported), err)
	if err == nil {
		b.Close()
	}
	os.Exit(0)
}

// A container is a host on which there is little: no root, then root without
// capabilities, then no cgroups.
func TestAHostThatLacksSomethingSaysWhatAndWhatHelps(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(o *Options) { o.AllowPrivileged = true })
	for _, test := range []struct {
		name, user string
		privileged bool
		says       []string
	}{
		{"without root", "nobody", false, []string{"unsupported true: ", "take root", "run as root or use the process backend"}},
		{"root without capabilities", "root", false, []string{"unsupported true: ", "CAP_SYS_ADMIN", "start the daemon with it"}},
		{"without cgroups", "root", true, []string{"unsupported true: ", "cgroup"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			guid, _ := f.create(func(c *executor.ContainerSpec) {
				c.Privileged = test.privileged
				c.Mounts = []executor.Mount{{Source: exe, Target: "/test/exe"}}
			})
			r := f.as(test.user, guid, "", func(s *executor.ProcessSpec) {
				s.Path, s.Args = "/test/exe", nil
				s.Env = []executor.EnvVar{{Name: daemonDir, Value: "/tmp/cell"}, {Name: daemonStage, Value: probing}}
			})
			if e := r.end(); !e.Success() {
				t.Errorf("it ended with %v: %s", e, r.stderr)
			}
			for _, text := range test.says {
				if !strings.Contains(r.stdout.String(), text) {
					t.Errorf("it said %q, want %q", r.stdout, text)
				}
			}
		})
	}
}

func TestADirThatCarriesNoOverlayIsSaidToAndTakesNoContainer(t *testing.T) {
	testenv.Root(t)
	base := t.TempDir()
	for _, name := range []string{"lower", "upper", "work", "cell"} {
		if err := os.Mkdir(filepath.Join(base, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := filepath.Join(base, "cell") // an overlay cannot hold the upper layer of another
	if err := unix.Mount("overlay", dir, "overlay", 0, fmt.Sprintf("lowerdir=%[1]s/lower,upperdir=%[1]s/upper,workdir=%[1]s/work", base)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	b, err := New(Options{Dir: dir, HostNetwork: true})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	host, err := b.Probe(t.Context())
	if err != nil || host.Has(executor.FeatureRootFS) {
		t.Errorf("it has %+v, %v", host.Features, err)
	}
	_, err = b.Create(t.Context(), executor.ContainerSpec{GUID: "a", RootFS: "host:"})
	if !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), "put Options.Dir on a file system that carries it") {
		t.Errorf("the error is %v", err)
	}
	if guids, err := b.List(t.Context()); err != nil || len(guids) != 0 {
		t.Errorf("left behind: %q, %v", guids, err)
	}
}

func TestAContainerThatNobodyKnowsAnyMoreIsRemovedByItsGuidAlone(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources.DiskMB = 16 })
	f.as("nobody", guid, idle)
	c := f.containers[guid]
	c.life.Lock()
	err := c.end(f.ctx) // as the kernel does when a daemon dies
	c.life.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.network.Remove(&c.link, false); err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.containers = map[string]*container{}
	f.mu.Unlock()
	f.delete(guid)
	if got := traces(t, f.Backend); len(got) != 1 { // the table
		t.Errorf("left behind: %q", got)
	}
}

// What else libcontainer and this package write to start a container would cost
// the host's disk a write, and each deletion another.
func TestTheDirectoryOfAContainerHoldsOnlyItsLayer(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	entries, err := os.ReadDir(f.dir(guid))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if want := []string{rootfs.UpperDir, "work"}; !slices.Equal(names, want) {
		t.Errorf("it holds %q, want %q", names, want)
	}
	if left, err := os.ReadDir(f.states); err != nil || len(left) > 0 {
		t.Errorf("libcontainer has left %q of what it needs for a start, %v", left, err)
	}
}

func TestAllThatTheDaemonMountsForAContainerIsUnmountedAtOnce(t *testing.T) {
	eachIDs(t, func(t *testing.T, edit func(*Options)) {
		f := newFixture(t, edit)
		c := rootfs.Container{GUID: "tree", Dir: t.TempDir(), RootFS: "host:", Layer: t.TempDir(), DiskMB: 16}
		if f.ids != nil {
			var err error
			if c.IDs, err = f.ids.Take(c.GUID); err != nil {
				t.Fatal(err)
			}
		}
		if _, _, _, err := f.roots.Mount(f.ctx, c); err != nil {
			t.Fatal(err)
		}
		if all := mounts(t, f.mounts); len(all) < 3 { // its directory, its disk and its root file system
			t.Errorf("there are only %q", all)
		}
		if err := unix.Unmount(filepath.Join(f.mounts, c.GUID), unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
		if left := mounts(t, f.mounts); len(left) > 0 {
			t.Errorf("after one unmount, there are still %q", left)
		}
		if err := f.roots.Unmount(c.GUID); err != nil {
			t.Error(err)
		}
		if got := traces(t, f.Backend); len(got) > 1 { // the table
			t.Errorf("left behind: %q", got)
		}
	})
}

func TestAMountOfTheReleaseBeforeIsUnmounted(t *testing.T) {
	f := newFixture(t)
	root := filepath.Join(f.mounts, "old", "root")
	if err := errors.Join(os.MkdirAll(root, 0o700), unix.Mount("none", root, "tmpfs", 0, "")); err != nil {
		t.Fatal(err)
	}
	if err := f.roots.Unmount("old"); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(filepath.Dir(root)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its directory: %v, mounted: %q", err, mounts(t, f.mounts))
		_ = unix.Unmount(root, unix.MNT_DETACH)
	}
}
