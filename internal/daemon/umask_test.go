//go:build unix

package daemon

import (
	"bytes"
	"errors"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestUsersOfContainersGetThroughWhateverTheUmask(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	ctx := t.Context()
	b, err := OpenBackend(ctx, BackendOptions{Kind: RealBackend, Dir: t.TempDir()})
	if errors.Is(err, executor.ErrUnsupported) {
		testenv.Missing(t, "a host for containers", err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	spec := executor.ContainerSpec{GUID: "c", RootFS: "host:", CPUWeight: executor.MaxCPUWeight, Resources: trialSize,
		Files: []executor.File{{Path: "/given/file", Content: "x"}}}
	if _, err := b.Create(ctx, spec); err != nil {
		t.Fatal(err)
	}
	defer b.Delete(ctx, spec.GUID)
	var said bytes.Buffer
	exited := make(chan executor.Exit, 1)
	if _, err := b.Start(ctx, spec.GUID, executor.ProcessSpec{
		Path: "/bin/cat", Args: []string{"/given/file"}, User: "nobody", Stdout: &said, Stderr: &said,
		Exited: func(e executor.Exit) { exited <- e },
	}); err != nil {
		t.Fatal(err)
	}
	if <-exited; said.String() != "x" {
		t.Errorf("it says %q", &said)
	}
	if b.SharedIDs {
		t.Errorf("ids are shared: %q", b.Lacks)
	}
}
