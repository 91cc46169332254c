//go:build linux && cgo && (amd64 || arm64)

package ids

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
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

func TestUsersAreLookedForOnlyAtTheBeginningOfHugeFilesAndThatIsSaid(t *testing.T) {
	dir := t.TempDir()
	long := "many:x:1:" + strings.Repeat("member,", 20_000) + "\n"
	files := map[string]string{
		PasswdFile: "first:x:7:7::/:\n" + strings.Repeat("#\n", maxUsersBytes) + "last:x:8:8::/:\n",
		GroupFile:  long + "after:x:9:\n",
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(name)), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := func(name string) (*os.File, error) { return os.Open(filepath.Join(dir, filepath.Base(name))) }
	if u, err := FindUser("c", "first:after", Range{}, open); err != nil || u.UID != 7 || u.GID != 9 {
		t.Errorf("the first is %+v, %v", u, err)
	}
	if _, err := FindUser("c", "last", Range{}, open); !errors.Is(err, executor.ErrNoUser) || !strings.Contains(err.Error(), "in their first 512 KiB") {
		t.Errorf("the last: %v", err)
	}
	none := func(string) (*os.File, error) { return nil, os.ErrNotExist }
	if _, err := FindUser("c", "last", Range{}, none); err == nil || strings.Contains(err.Error(), "first") {
		t.Errorf("without the files: %v", err)
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
