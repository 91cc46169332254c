//go:build linux && cgo && (amd64 || arm64)

package ids

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestTwoCellsOfAHostNeverGiveTheSameIDs(t *testing.T) {
	testenv.Root(t)
	// Where no other run of the tests looks for any.
	const size, ranges = 1 << 16, RangesPerBlock + 1
	first := uint32(1_000_000_000 + os.Getpid()%200*2*RangesPerBlock*size)
	pool := func(id string) *Pool {
		p, err := NewPool(id, first, first+ranges*size-1, size)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Close)
		return p
	}
	one, two := pool("00"), pool("01")
	seen := map[uint32]bool{}
	for _, p := range []*Pool{one, two, one} {
		var err error
		for err == nil { // all that it can have
			var r Range
			if r, err = p.Take(fmt.Sprint("x-", len(seen))); err == nil {
				if seen[r.First] {
					t.Errorf("the ids from %d on are given twice", r.First)
				}
				seen[r.First] = true
			}
		}
		if !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), fmt.Sprintf("all 33 ranges of 65536 uids from %d on are in use, by this cell or others of this host; set Options.FirstID", first)) {
			t.Errorf("the error is %v", err)
		}
	}
	if len(seen) != ranges {
		t.Errorf("%d of %d ranges were given", len(seen), ranges)
	}
}

func TestAMountThatHidesAPartOfProcIsFound(t *testing.T) {
	for mounts, want := range map[string]string{
		"25 1 0:22 / /proc rw - proc proc rw\n30 25 0:30 / /proc/sys/fs/binfmt_misc rw - autofs x rw\n": "",
		"25 1 0:22 / /proc rw - proc proc rw\n30 25 0:30 / /proc/kcore rw - tmpfs x rw\n":               "/proc/kcore",
		"25 1 0:22 / /process rw - tmpfs x rw\n":                                                        "",
		"":                                                                                              "",
	} {
		if got := onProc(mounts); got != want {
			t.Errorf("%q: %q, want %q", mounts, got, want)
		}
	}
}
