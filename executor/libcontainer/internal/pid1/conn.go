//go:build linux && cgo && (amd64 || arm64)

package pid1

/*
#include "pid1.h"
*/
import "C"

import (
	"encoding/binary"
	"errors"
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/internal/nowait"
)

// A Conn is the daemon's end of the socket of a first process.
type Conn struct{ fd int }

// Pair returns a Conn and the other end, which the caller closes once the
// first process has it.
func Pair() (*Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return &Conn{fds[0]}, os.NewFile(uintptr(fds[1]), "pid1"), nil
}

// IsFirst reports whether this process has the socket of a first process, and
// so is to become one.
func IsFirst() bool {
	kind, err := unix.GetsockoptInt(C.PID1_SOCKET_FD, unix.SOL_SOCKET, unix.SO_TYPE)
	return err == nil && kind == unix.SOCK_SEQPACKET
}

// AwaitEnd returns soon after the daemon has gone. It is for a process that is
// to become a first process and cannot yet see that for itself. It looks now
// and then: libcontainer's process runs one goroutine at a time, and to wait in
// a system call would hold the others up for milliseconds.
func AwaitEnd() {
	const pause = 10 * time.Millisecond
	for {
		polled := []unix.PollFd{{Fd: C.PID1_SOCKET_FD}} // an end is always told
		unix.Poll(polled, 0)
		if polled[0].Revents&unix.POLLHUP != 0 {
			return
		}
		time.Sleep(pause)
	}
}

// FD is the descriptor, to be polled for reading.
func (c *Conn) FD() int { return c.fd }

// Close ends the container whose first process is at the other end.
func (c *Conn) Close() error { return unix.Close(c.fd) }

// A Message is what a first process says.
type Message struct {
	Event Event
	// PID and Status are those of a process that has exited. PID is within the
	// container.
	PID    int
	Status unix.WaitStatus
}

// An Event is a kind of Message.
type Event uint32

// The events.
const (
	Ready  Event = C.PID1_READY
	Exited Event = C.PID1_EXITED
)

// Receive returns the next message. It is EAGAIN if there is none yet. Any
// other error means that the first process is gone.
func (c *Conn) Receive() (Message, error) {
	var b [unsafe.Sizeof(C.struct_pid1_message{})]byte
	n, err := nowait.Read(c.fd, b[:])
	if err != nil {
		return Message{}, err
	}
	if n != len(b) {
		return Message{}, unix.EPIPE
	}
	m := (*C.struct_pid1_message)(unsafe.Pointer(&b))
	return Message{Event: Event(m.op), PID: int(m.pid), Status: unix.WaitStatus(m.value)}, nil
}

// Signal sends a signal to a process, to a group if pid is negative, or to
// everything in the container if it is -1.
func (c *Conn) Signal(pid int, s unix.Signal) error {
	return c.send(C.struct_pid1_message{op: C.PID1_SIGNAL, pid: C.int32_t(pid), value: C.int32_t(s)}, nil)
}

// sendPatience bounds how long a message waits for a first process to take earlier
// ones: who sends keeps Delete waiting. Tests have less.
var sendPatience = 10 * time.Second

// errStuck is the error of a message that could not be sent.
var errStuck = errors.New("the first process of the container takes no messages; somebody may have stopped or frozen it, or others leave it no processor time")

func (c *Conn) send(m C.struct_pid1_message, fds []int) error {
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	bytes := (*[unsafe.Sizeof(m)]byte)(unsafe.Pointer(&m))[:]
	end := time.Now().Add(sendPatience)
	for {
		err := unix.Sendmsg(c.fd, bytes, rights, nil, unix.MSG_NOSIGNAL)
		switch err {
		case nil:
			return nil
		case unix.EINTR:
		case unix.EAGAIN: // a hundred others are being started
			left := time.Until(end)
			if left <= 0 {
				return errStuck
			}
			polled := []unix.PollFd{{Fd: int32(c.fd), Events: unix.POLLOUT}}
			if _, err := unix.Poll(polled, int(left/time.Millisecond)+1); err != nil && err != unix.EINTR {
				return os.NewSyscallError("poll", err)
			}
		default:
			return os.NewSyscallError("sendmsg", err)
		}
	}
}

// A Request is a process to be started. Nothing in it is looked up any more.
type Request struct {
	// Paths are tried in order.
	Paths    []string
	Args     []string // with the program's own name
	Env      []string
	Dir      string
	UID, GID uint32
	Groups   []uint32
	Limits   []Limit
	// Filter is a program of struct sock_filter, which limits the system calls
	// of the process and of all that it starts. It takes a process without
	// new privileges.
	Filter []byte
	// KeepCapabilities leaves the process what the first process has.
	KeepCapabilities bool
	// Terminal says that stdin is one, which the process is to control.
	Terminal bool
}

// A Limit is one of setrlimit(2).
type Limit struct {
	Resource   int
	Soft, Hard uint64
}

// Start asks for a process. What comes of it is in the answer, of which the caller
// keeps the reading end.
func (c *Conn) Start(answer *Answer, r Request, stdin, stdout, stderr *os.File) error {
	defer answer.sent()
	request, size, err := r.file()
	if err != nil {
		return err
	}
	defer nowait.Close(request)
	fds := make([]int, C.PID1_FDS)
	fds[C.PID1_FD_ANSWER] = answer.writer
	fds[C.PID1_FD_REQUEST] = request
	fds[C.PID1_FD_STDIN] = rawFD(stdin)
	fds[C.PID1_FD_STDOUT] = rawFD(stdout)
	fds[C.PID1_FD_STDERR] = rawFD(stderr)
	return c.send(C.struct_pid1_message{op: C.PID1_START, value: C.int32_t(size)}, fds)
}

// rawFD is the descriptor of a file that a process is to have, which expects
// that it blocks. Go opens pipes so that they do not.
func rawFD(f *os.File) int {
	fd := -1
	if raw, err := f.SyscallConn(); err == nil {
		raw.Control(func(n uintptr) {
			fd = int(n)
			unix.SetNonblock(fd, false)
		})
	}
	return fd
}

// maxRequestBytes is more than any execve takes.
const maxRequestBytes = 32 << 20

// file writes the request in the layout of struct pid1_request to a file in memory.
func (r Request) file() (fd, size int, err error) {
	header := make([]byte, unsafe.Sizeof(C.struct_pid1_request{}))
	body := header
	put := func(v uint64) { body = binary.NativeEndian.AppendUint64(body, v) }
	text := func(s string) uint64 {
		at := uint64(len(body))
		body = append(append(body, s...), 0)
		return at
	}
	align := func() uint64 {
		for len(body)%8 != 0 {
			body = append(body, 0)
		}
		return uint64(len(body))
	}
	list := func(texts []string) uint64 {
		offsets := make([]uint64, 0, len(texts)+1)
		for _, s := range texts {
			offsets = append(offsets, text(s))
		}
		at := align()
		for _, o := range append(offsets, 0) {
			put(o)
		}
		return at
	}
	q := C.struct_pid1_request{
		uid: C.uint64_t(r.UID), gid: C.uint64_t(r.GID),
		group_count: C.uint64_t(len(r.Groups)), limit_count: C.uint64_t(len(r.Limits)),
		dir: C.uint64_t(text(r.Dir)), argv: C.uint64_t(list(r.Args)),
		envp: C.uint64_t(list(r.Env)), paths: C.uint64_t(list(r.Paths)),
	}
	if r.KeepCapabilities {
		q.keep_capabilities = 1
	}
	if r.Terminal {
		q.terminal = 1
	}
	q.limits = C.uint64_t(align())
	for _, l := range r.Limits {
		put(uint64(l.Resource))
		put(l.Soft)
		put(l.Hard)
	}
	q.filter = C.uint64_t(align())
	q.filter_count = C.uint64_t(len(r.Filter) / unix.SizeofSockFilter)
	body = append(body, r.Filter...)
	q.groups = C.uint64_t(align())
	for _, g := range r.Groups {
		body = binary.NativeEndian.AppendUint32(body, g)
	}
	align()
	copy(body, (*[unsafe.Sizeof(q)]byte)(unsafe.Pointer(&q))[:])
	if len(body) > maxRequestBytes {
		return -1, 0, unix.E2BIG
	}
	fd, err = unix.MemfdCreate("diego-request", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, 0, os.NewSyscallError("memfd_create", err)
	}
	for rest := body; len(rest) > 0; {
		n, err := unix.Write(fd, rest)
		if err != nil && err != unix.EINTR {
			unix.Close(fd)
			return -1, 0, os.NewSyscallError("write", err)
		}
		rest = rest[max(n, 0):]
	}
	return fd, len(body), nil
}
