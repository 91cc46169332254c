//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
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

// What libcontainer has written about a container is for nobody.
func TestWhatIsLeftIsRemovedWhateverLibcontainerHasWrittenAboutIt(t *testing.T) {
	f := newFixture(t)
	for name, spoil := range map[string]func(state string) error{
		"nothing":       os.RemoveAll,
		"no words":      func(state string) error { return os.WriteFile(filepath.Join(state, "state.json"), nil, 0o600) },
		"half of it":    func(state string) error { return os.Truncate(filepath.Join(state, "state.json"), 100) },
		"another place": func(state string) error { return os.Rename(state, state+"-2") },
		"somebody else's processes": func(state string) error {
			return os.WriteFile(filepath.Join(state, "state.json"), fmt.Appendf(nil, `{"id":"c-1","init_process_pid":%d}`, os.Getpid()), 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f.count = 0
			guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources.DiskMB = 16 })
			f.as("nobody", guid, idle)
			if err := spoil(filepath.Join(f.dir(guid), stateDir)); err != nil {
				t.Fatal(err)
			}
			c := f.containers[guid]
			c.life.Lock()
			c.end() // as the kernel does when a daemon dies
			c.life.Unlock()
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
		})
	}
}
