//go:build linux && cgo && (amd64 || arm64)

package pid1

/*
#include "pid1.h"
*/
import "C"

import (
	"io"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/internal/nowait"
)

// An Answer is a pipe that says what comes of one start. Next is called with
// the container's lock.
type Answer struct{ reader, writer int }

// NewAnswer returns an Answer, which the caller closes.
func NewAnswer() (*Answer, error) {
	var ends [2]int
	if err := unix.Pipe2(ends[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, os.NewSyscallError("pipe2", err)
	}
	return &Answer{ends[0], ends[1]}, nil
}

// FD is the descriptor of which [Poller.WatchEnd] sees the end.
func (a *Answer) FD() int { return a.reader }

// sent leaves the writing to the other side.
func (a *Answer) sent() {
	nowait.Close(a.writer)
	a.writer = -1
}

// Close frees the descriptors.
func (a *Answer) Close() {
	if a.writer >= 0 {
		a.sent()
	}
	nowait.Close(a.reader)
}

// Next returns the next part of the answer: the child's number within the
// container, or a *Failure, which says why there is no child or what has kept it
// from becoming its program. A child that fails may say so before its number
// comes. The end is io.EOF: there is a child that has become its program, or has
// failed, or the first process has not taken the request. Before the end, the
// error may be EAGAIN.
func (a *Answer) Next() (pid int, err error) {
	var b [unsafe.Sizeof(C.struct_pid1_answer{})]byte
	n, err := nowait.Read(a.reader, b[:])
	switch {
	case err != nil:
		return 0, err
	case n != len(b): // nothing writes less
		return 0, io.EOF
	}
	answer := (*C.struct_pid1_answer)(unsafe.Pointer(&b))
	if answer.stage == C.PID1_FORKED {
		return int(answer.value), nil
	}
	return 0, &Failure{Stage: Stage(answer.stage), Errno: unix.Errno(answer.value)}
}

// A Failure says why there is no child, or what has kept it from becoming its
// program.
type Failure struct {
	Stage Stage
	Errno unix.Errno
}

func (f *Failure) Error() string { return f.Errno.Error() }

// Unwrap is the Errno.
func (f *Failure) Unwrap() error { return f.Errno }

// A Stage is a part of a start.
type Stage uint32

// The stages. StageFork is the first process's, the others are the child's.
const (
	StageFork    Stage = C.PID1_STAGE_FORK
	StageRequest Stage = C.PID1_STAGE_REQUEST
	StageLimit   Stage = C.PID1_STAGE_LIMIT
	StageUser    Stage = C.PID1_STAGE_USER
	StageDir     Stage = C.PID1_STAGE_DIR
	StageFilter  Stage = C.PID1_STAGE_FILTER
	StageExec    Stage = C.PID1_STAGE_EXEC
)
