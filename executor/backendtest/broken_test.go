//go:build linux

package backendtest_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest"
	"github.com/diegosdk/diego/executor/process"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

// A suite that no backend fails proves nothing. Each of these backends breaks
// one sentence of the contract, and the suite must say which.
var brokenBackends = []struct {
	name string
	// sentence is part of the name of a case that must fail.
	sentence string
	// deletes takes the place of Delete, of a daemon that has started again or
	// of every one.
	again   bool
	deletes func(ctx context.Context, b *broken, guid string) error
}{
	{"a new daemon removes files only", "containers of an earlier daemon", true, func(_ context.Context, b *broken, guid string) error {
		return os.RemoveAll(filepath.Join(b.dir, guid))
	}},
	{"only what was started is killed", "Delete ends what runs in the container", false, func(ctx context.Context, b *broken, guid string) error {
		var err error
		for _, p := range b.started {
			err = errors.Join(err, p.Signal(executor.Terminate)) // its children have left its group
		}
		return errors.Join(err, os.RemoveAll(filepath.Join(b.dir, guid)))
	}},
	{"all containers are emptied", "Delete ends what runs in the container and nowhere else", false, func(ctx context.Context, b *broken, guid string) error {
		all, err := b.List(ctx)
		for _, other := range all {
			err = errors.Join(err, b.Signal(ctx, other, executor.Kill))
		}
		return errors.Join(err, b.ContainerBackend.Delete(ctx, guid))
	}},
}

// A broken backend is one of processes whose Delete is another, and which
// cannot count processes.
type broken struct {
	executor.ContainerBackend
	dir     string
	deletes func(ctx context.Context, b *broken, guid string) error
	started []executor.Process
}

func (b *broken) Start(ctx context.Context, guid string, s executor.ProcessSpec) (executor.Process, error) {
	p, err := b.ContainerBackend.Start(ctx, guid, s)
	if err == nil {
		b.started = append(b.started, p)
	}
	return p, err
}

func (b *broken) Delete(ctx context.Context, guid string) error {
	if b.deletes == nil {
		return b.ContainerBackend.Delete(ctx, guid)
	}
	return b.deletes(ctx, b, guid)
}

func (b *broken) Usage(ctx context.Context, guid string) (executor.Usage, error) {
	m, err := b.ContainerBackend.Usage(ctx, guid)
	m.PIDs = executor.Unknown
	return m, err
}

const brokenBackend = "DIEGO_BACKENDTEST_BROKEN"

func TestTheSuiteFindsWhatIsBroken(t *testing.T) {
	for _, c := range brokenBackends {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv(brokenBackend) == "" {
				child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$/"+c.sentence, "-test.count=1")
				child.Env = append(os.Environ(), brokenBackend+"=1")
				output, err := child.CombinedOutput()
				if err == nil || !strings.Contains(string(output), "--- FAIL: "+t.Name()+"/"+strings.ReplaceAll(c.sentence, " ", "_")) {
					t.Errorf("the suite does not find that %q is broken: %v\n%s", c.sentence, err, output)
				}
				return
			}
			backendtest.SetPatience(5 * time.Second)
			open := func(dir string, again bool) *broken {
				b, err := process.New(process.Options{Dir: dir})
				if err != nil {
					t.Fatal(err)
				}
				if again != c.again {
					return &broken{ContainerBackend: b, dir: dir}
				}
				return &broken{ContainerBackend: b, dir: dir, deletes: c.deletes}
			}
			backendtest.Run(t, backendtest.Subject{
				New: func(t *testing.T) executor.ContainerBackend {
					dir := t.TempDir()
					t.Cleanup(func() { // what it has left alive
						b, err := process.New(process.Options{Dir: dir})
						for _, guid := range []string{"container-1", "container-2"} {
							err = errors.Join(err, b.Delete(context.Background(), guid))
						}
						if err != nil {
							t.Error(err)
						}
					})
					return open(dir, false)
				},
				Restart: func(_ *testing.T, old executor.ContainerBackend) executor.ContainerBackend {
					return open(old.(*broken).dir, true)
				},
				RootFS: "host:", User: "nobody",
			})
		})
	}
}
