package executor

import (
	"context"
	"io"
)

// A SessionBackend is a [ContainerBackend] that lets somebody work in a
// container: run a program and talk to it, and copy files, each with the rights
// of a user of the container. Its methods may be called concurrently, and end
// like those of the ContainerBackend when the container is deleted.
type SessionBackend interface {
	// StartSession starts a process as Start does, with the same rights and
	// limits, and connects the caller with it. The Stdout and Stderr of the
	// ProcessSpec are not used. When the process ends, the backend kills what
	// descends from it, as far as Process.Signal does, before it calls Exited.
	StartSession(ctx context.Context, guid string, s SessionSpec) (Session, error)

	// CopyIn unpacks a tar stream that has one file or directory tree, with the
	// rights of the user: what the user may not write is an error. If path is a
	// directory, the file or directory becomes an entry of it under its own name;
	// otherwise it becomes path. If the directory above path is missing, or path
	// ends with a slash and is not a directory, that is an ErrNoFile. A directory
	// is merged into one of its name, and a file replaces another; a file in place
	// of a directory, or the reverse, is an fs.ErrExist. The stream is not
	// trusted; see StreamIn.
	CopyIn(ctx context.Context, guid, path, user string, tar io.Reader) error

	// CopyOut is StreamOut with the rights of the user: what the user may not read
	// is an error.
	CopyOut(ctx context.Context, guid, path, user string) (io.ReadCloser, error)
}

// A SessionSpec describes a process that somebody talks to. It is a plain value.
type SessionSpec struct {
	ProcessSpec
	// Terminal gives the process a terminal of that size, which it controls; nil
	// gives it pipes.
	Terminal *TerminalSize
}

// A Session is a process that was started by StartSession. Its methods may be
// called concurrently, but one stream is read or written by one goroutine at a
// time.
type Session interface {
	// Stdin is the input of the process, or its terminal. Write waits until the
	// process takes the input. Close ends the input of a process without a
	// terminal; with one, it does nothing.
	Stdin() io.WriteCloser
	// Stdout and Stderr are what the process writes. Both end soon after the
	// process. With a terminal, everything comes from Stdout.
	Stdout() io.Reader
	Stderr() io.Reader
	// Resize changes the size of the terminal. Without one it does nothing.
	Resize(TerminalSize) error
	// Signal sends a signal to the process and to those of its children that are
	// still in its process group. A process that has ended is not an error.
	Signal(SessionSignal) error
	// Close kills the process, with what descends from it, and frees what the
	// session holds. Reads and writes end. It may be called more than once.
	Close() error
}
