//go:build linux && cgo && (amd64 || arm64)

package network

import (
	"context"
	"net"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Socket makes a TCP socket in the network of the container, for [Dial].
func (l *Link) Socket() (fd int, err error) {
	fd = -1
	err = InNamespace(l.wire.ns, func() (err error) {
		fd, err = unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		return os.NewSyscallError("socket", err)
	})
	return fd, err
}

// InNamespace calls f in a network namespace. Only what f does in its own
// goroutine counts.
func InNamespace(ns *os.File, f func() error) error {
	return elsewhere(func() error { return os.NewSyscallError("setns", unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET)) }, f)
}

// elsewhere calls f in the network namespace that enter goes to. A thread that
// does not find its way back is not used again.
func elsewhere(enter, f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		own, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			runtime.UnlockOSThread()
			result <- err
			return
		}
		defer own.Close()
		if err := enter(); err != nil {
			runtime.UnlockOSThread()
			result <- err
			return
		}
		err = f()
		if unix.Setns(int(own.Fd()), unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		} // else the thread ends with this goroutine
		result <- err
	}()
	return <-result
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// Dial connects a socket to a port of its own loopback. The socket belongs to
// Dial from then on.
func Dial(ctx context.Context, fd int, port uint16) (net.Conn, error) {
	f := os.NewFile(uintptr(fd), "dial")
	defer f.Close() // FileConn has a copy
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { f.SetWriteDeadline(past) })
	defer stop()
	begun := false
	waitErr := raw.Write(func(uintptr) bool {
		if !begun {
			begun = true
			err = unix.Connect(fd, &unix.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
			return err != unix.EINPROGRESS
		}
		code, optErr := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR)
		switch {
		case optErr != nil:
			err = optErr
		case code != 0:
			err = unix.Errno(code)
		default:
			_, err = unix.Getpeername(fd)
		}
		return err != unix.ENOTCONN // which is still on its way
	})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case waitErr != nil:
		return nil, waitErr
	case err != nil:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", err)}
	}
	return net.FileConn(f)
}
