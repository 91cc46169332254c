package terminal

import (
	"os"
	"syscall"
	"testing"
	"unsafe"

	"github.com/diegosdk/diego/executor"
)

func TestATerminalHasTheSizeThatItWasGiven(t *testing.T) {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if width, is := Width(f); !is || width != 0 {
		t.Errorf("without a size it is a terminal (%v) with %d columns", is, width)
	}
	size := struct{ rows, columns, x, y uint16 }{33, 99, 0, 0}
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCSWINSZ, uintptr(unsafe.Pointer(&size))); errno != 0 {
		t.Fatal(errno)
	}
	if width, is := Width(f); !is || width != 99 {
		t.Errorf("it is a terminal (%v) with %d columns", is, width)
	}
	own := Of(f)
	if got, err := own.Size(); err != nil || got != (executor.TerminalSize{Columns: 99, Rows: 33}) {
		t.Errorf("its size is %+v, %v", got, err)
	}
}

func TestARawTerminalIsRestored(t *testing.T) {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	echoes := func() bool {
		var state syscall.Termios
		if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TCGETS, uintptr(unsafe.Pointer(&state))); errno != 0 {
			t.Fatal(errno)
		}
		return state.Lflag&syscall.ECHO != 0
	}
	before := echoes()
	restore, err := Of(f).Raw()
	if err != nil {
		t.Fatal(err)
	}
	during := echoes()
	restore()
	if after := echoes(); !before || during || !after {
		t.Errorf("it echoes before, in raw mode and afterwards: %v, %v, %v; want true, false, true", before, during, after)
	}
}
