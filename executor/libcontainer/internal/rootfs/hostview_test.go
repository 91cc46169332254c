//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/internal/testenv"
)

// Somebody who has used up the daemon's descriptors must not get the host's files
// shown in the weaker way from then on.
func TestWhatIsExhaustedDoesNotDecideHowTheHostIsShown(t *testing.T) {
	testenv.Root(t)
	dirs := hostDirectories()
	var wanted hostView
	if err := wanted.look(dirs); err != nil {
		t.Fatal(err)
	}
	defer wanted.close()

	next, err := os.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	limit := uint64(next.Fd())
	next.Close()
	var old unix.Rlimit
	if err := errors.Join(unix.Getrlimit(unix.RLIMIT_NOFILE, &old),
		unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: old.Max})); err != nil {
		t.Fatal(err)
	}
	var v hostView
	lookErr := v.look(dirs)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(lookErr, unix.EMFILE) || v.known {
		t.Errorf("without a descriptor it is decided: %v, %v", v.known, lookErr)
	}
	if err := v.look(dirs); err != nil || (v.owners != nil) != (wanted.owners != nil) {
		t.Errorf("with descriptors again: %v, without owners: %v, want %v", err, v.owners != nil, wanted.owners != nil)
	}
	v.close()
}
