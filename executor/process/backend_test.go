//go:build unix

package process_test

import (
	"runtime"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest"
	"github.com/diegosdk/diego/executor/process"
)

func TestMain(m *testing.M) { backendtest.Main(m) }

func newBackend(t *testing.T, dir string) executor.ContainerBackend {
	t.Helper()
	b, err := process.New(process.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheProcessBackendKeepsTheContractOfBackends(t *testing.T) {
	dirs := map[executor.ContainerBackend]string{}
	subject := backendtest.Subject{
		New: func(t *testing.T) executor.ContainerBackend {
			dir := t.TempDir()
			b := newBackend(t, dir)
			dirs[b] = dir
			return b
		},
		Restart: func(t *testing.T, old executor.ContainerBackend) executor.ContainerBackend {
			return newBackend(t, dirs[old])
		},
		RootFS: "host:",
		User:   "nobody",
	}
	if runtime.GOOS != "linux" {
		subject.Restart = nil // what an earlier daemon has started must be ended by hand, as the package says
	}
	backendtest.Run(t, subject)
}
