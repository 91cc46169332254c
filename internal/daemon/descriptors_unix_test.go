//go:build unix

package daemon

import (
	"syscall"
	"testing"
)

func TestADoorKeepsFewConnectionsIfTheProcessMayHaveFewDescriptors(t *testing.T) {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	low := limit
	low.Cur = 200
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &low); err != nil {
		t.Fatal(err)
	}
	got := newDoor(nil).most
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if want := (bounds{50, 50, 50}); got != want {
		t.Errorf("a door has %+v, want %+v", got, want)
	}
}
