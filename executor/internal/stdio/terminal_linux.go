package stdio

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// OpenTerminal makes a terminal of the multiplexer at path, for a user. It never
// becomes the terminal of this process, which may lead a session. The ids are
// those of the host; -1 leaves them as they are.
func OpenTerminal(path string, uid, gid int) (master, slave *os.File, err error) {
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err == unix.ENOSPC {
		return nil, nil, fmt.Errorf("there is no terminal left: %w; end programs that have one, or run this one without", err)
	}
	if err != nil {
		return nil, nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	master = os.NewFile(uintptr(fd), "terminal")
	defer func() {
		if err != nil {
			master.Close()
		}
	}()
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		return nil, nil, fmt.Errorf("unlock a terminal: %w", err)
	}
	// Through the master, not by a path: a tenant may have put another file there.
	child, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.TIOCGPTPEER, unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC)
	if errno != 0 {
		return nil, nil, fmt.Errorf("open a terminal: %w", errno)
	}
	slave = os.NewFile(child, "terminal")
	if uid >= 0 {
		if err := unix.Fchown(int(child), uid, gid); err != nil {
			slave.Close()
			return nil, nil, fmt.Errorf("give a terminal away: %w", err)
		}
	}
	if err := unix.Fchmod(int(child), 0o600); err != nil {
		slave.Close()
		return nil, nil, fmt.Errorf("keep others from a terminal: %w", err)
	}
	return master, slave, nil
}

// resize is for the master of a terminal.
func resize(f *os.File, size executor.TerminalSize) error {
	raw, err := f.SyscallConn()
	if err != nil {
		return err
	}
	window := &unix.Winsize{Row: size.Rows, Col: size.Columns}
	if failed := raw.Control(func(fd uintptr) { err = unix.IoctlSetWinsize(int(fd), unix.TIOCSWINSZ, window) }); failed != nil {
		return failed
	}
	return err
}

func isEIO(err error) bool { return errors.Is(err, unix.EIO) }
