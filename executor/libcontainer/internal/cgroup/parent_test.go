//go:build linux && cgo && (amd64 || arm64)

package cgroup

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/internal/testenv"
)

func TestOwnershipOfCgroupsIsTakenOverFromTheDead(t *testing.T) {
	testenv.Root(t)
	base, err := Base()
	if err != nil {
		t.Fatal(err)
	}
	name := fmt.Sprintf("diego-test-owned-%d", os.Getpid())
	first, second := NewParent(base, name), NewParent(base, name)
	defer first.Close()
	defer second.Close()
	if !first.Own() || second.Own() {
		t.Fatal("both own the cgroups, or none")
	}
	unix.Flock(int(first.owned.Fd()), unix.LOCK_UN) // as the kernel does when a daemon dies
	if !second.Own() {
		t.Error("the cgroups of the dead belong to nobody")
	}
}
