package process_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/process"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestAContainerThatFillsTheDiskIsRefusedForLackOfRoom(t *testing.T) {
	testenv.Root(t)
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64k"); err != nil {
		testenv.Missing(t, "a small file system", err.Error())
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	b, err := process.New(process.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	spec := executor.ContainerSpec{GUID: "large", Files: []executor.File{{Path: "/large", Content: strings.Repeat("x", 128<<10)}}}
	if _, err := b.Create(t.Context(), spec); !errors.Is(err, executor.ErrNoRoom) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error is %v", err)
	}
	spec.GUID, spec.Files = "small", nil
	if _, err := b.Create(t.Context(), spec); err != nil {
		t.Errorf("it has left something: %v", err)
	}
}
