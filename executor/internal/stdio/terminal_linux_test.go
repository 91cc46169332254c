package stdio

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// The kernel locks the size of a terminal for each change, and a process of the container
// may hold that lock as it may hold that of a pipe.
func TestTheSizeOfATerminalIsChangedUnderItsGuard(t *testing.T) {
	var g Guard
	size := executor.TerminalSize{Columns: 101, Rows: 37}
	ends, err := OpenEnds(&size, func() (master, slave *os.File, err error) { return OpenTerminal("/dev/ptmx", -1, -1) })
	if err != nil {
		t.Fatal(err)
	}
	defer ends.Started()
	s := &Session{ends: ends, among: &Sessions{}}
	s.own[0] = &file{f: ends.own[0], guard: &g}
	held, free := make(chan struct{}), make(chan struct{})
	go g.call(func() {
		close(held)
		<-free
	})
	<-held
	resized := make(chan error, 1)
	go func() { resized <- s.Resize(executor.TerminalSize{Columns: 55, Rows: 22}) }()
	window := func() *unix.Winsize {
		w, err := unix.IoctlGetWinsize(int(ends.Child[0].Fd()), unix.TIOCGWINSZ)
		if err != nil {
			t.Fatal(err)
		}
		return w
	}
	for used := 0; used < 10_000; used++ { // until the change uses the file, and goes on to do so
		if s.own[0].using.TryLock() {
			s.own[0].using.Unlock()
			used = 0
		}
		select {
		case err := <-resized:
			t.Fatalf("the size was changed while the guard makes another call: %v", err)
		default:
		}
	}
	if w := window(); w.Col != 101 {
		t.Errorf("the size is %+v while the guard makes another call", w)
	}
	close(free)
	if err := <-resized; err != nil {
		t.Error(err)
	}
	if w := window(); w.Col != 55 || w.Row != 22 {
		t.Errorf("the size is %+v", w)
	}
	s.free()
	if err := s.Resize(size); !errors.Is(err, os.ErrClosed) {
		t.Errorf("to change the size of a terminal that is closed: %v", err)
	}
}
