package chromium

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// elsewhere returns what runs functions in a network namespace of its own, whose
// loopback is up, until end is called. A browser aborts its requests when an
// interface of its host comes or goes, as those of containers do all the time.
// Without root, functions run in the host's network.
func elsewhere() (run func(func() error) error, end func(), apart bool, err error) {
	if os.Geteuid() != 0 {
		return here, func() {}, false, nil
	}
	work, done := make(chan func() error), make(chan error)
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		for f := range work {
			done <- f()
		}
	}()
	run = func(f func() error) error {
		work <- f
		return <-done
	}
	end = func() { close(work) }
	if err = run(isolate); err != nil {
		end()
	}
	return run, end, true, err
}

// isolate gives the thread a network of its own.
func isolate() error {
	if err := os.NewSyscallError("unshare", unix.Unshare(unix.CLONE_NEWNET)); err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	lo, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	lo.SetUint16(unix.IFF_UP)
	return os.NewSyscallError("ioctl", unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, lo))
}
