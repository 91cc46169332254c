//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/internal/testenv"
)

// fakeLoops name the devices from 0 on, of which held and taken are somebody's.
type fakeLoops struct {
	held  map[int]bool // without a file, so that the kernel calls them free
	lost  int          // how many devices go to others after they were called free
	most  int          // devices
	made  []int
	asked int
	after func()
}

func (l *fakeLoops) free() (int, error) {
	if l.asked++; l.after != nil {
		l.after()
	}
	if l.lost >= l.most {
		return 0, unix.ENOSPC
	}
	return l.lost, nil
}

func (l *fakeLoops) add(n int) error {
	if n >= l.most {
		return unix.ENOSPC
	}
	l.made = append(l.made, n)
	return nil
}

func (l *fakeLoops) attach(_ *os.File, n int) (*os.File, error) {
	if l.held[n] {
		return nil, unix.EBUSY
	}
	return os.Open(os.DevNull)
}

func TestADiskTakesALoopDeviceThatNobodyHoldsOrSaysThatThereIsNone(t *testing.T) {
	all := map[int]bool{}
	for n := range 2 * maxHeldLoops {
		all[n] = true
	}
	ended, cancel := context.WithCancel(context.Background())
	for _, test := range []struct {
		name  string
		host  *fakeLoops
		says  string // "" is success
		asked int
	}{
		{"the first", &fakeLoops{most: 8}, "", 1},
		{"two are held by somebody without a file", &fakeLoops{most: 8, held: map[int]bool{0: true, 1: true}}, "", 3},
		{"all are taken", &fakeLoops{most: 8, lost: 8}, "no loop device is free: no space left on device; each container with a disk limit takes one", 1},
		{"all are held, and there can be no more", &fakeLoops{most: 2, held: all}, "another cannot be made", 3},
		{"more are held than are tried", &fakeLoops{most: 1 << 20, held: all}, "somebody holds 256 of them", maxHeldLoops},
		{"its context ends", &fakeLoops{most: 1 << 20, held: all, after: cancel}, "context canceled", 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := context.Background()
			if test.host.after != nil {
				ctx = ended
			}
			loop, err := attach(ctx, test.host, nil)
			if err == nil {
				loop.Close()
			}
			if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
				t.Errorf("got %v, want %q", err, test.says)
			}
			if test.host.asked != test.asked {
				t.Errorf("asked %d times for a free one, not %d", test.host.asked, test.asked)
			}
		})
	}
}

// Somebody holds the device that the kernel calls free, and attaches nothing.
func TestADiskDoesNotWaitForALoopDeviceThatSomebodyHolds(t *testing.T) {
	testenv.Root(t)
	file, err := os.Create(filepath.Join(t.TempDir(), "disk"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := file.Truncate(1 << 20); err != nil {
		t.Fatal(err)
	}
	const others = 3 // that may begin to use one meanwhile
	for range others {
		n, err := kernelLoops{}.free()
		if err != nil {
			testenv.Missing(t, "loop devices", err.Error())
		}
		held, err := os.OpenFile("/dev/loop"+strconv.Itoa(n), os.O_RDONLY|unix.O_EXCL, 0)
		if errors.Is(err, unix.EBUSY) { // somebody else has it by now
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := (kernelLoops{}).attach(file, n); !errors.Is(err, unix.EBUSY) {
			t.Errorf("%s is held, and attaching to it is %v", held.Name(), err)
		}
		loop, err := attach(t.Context(), kernelLoops{}, file)
		if err != nil {
			t.Errorf("while %s is held: %v", held.Name(), err)
		} else {
			loop.Close()
		}
		held.Close()
	}
}
