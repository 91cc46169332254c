package executor

import (
	"errors"
	"fmt"
	"io"
)

// A SessionSignal is the name of a signal that can be sent to a process, without
// "SIG".
type SessionSignal string

// The signals.
const (
	SignalHangup    SessionSignal = "HUP"
	SignalInterrupt SessionSignal = "INT"
	SignalQuit      SessionSignal = "QUIT"
	SignalKill      SessionSignal = "KILL"
	SignalUser1     SessionSignal = "USR1"
	SignalUser2     SessionSignal = "USR2"
	SignalTerminate SessionSignal = "TERM"
)

// SessionSignals lists all of them.
var SessionSignals = []SessionSignal{SignalHangup, SignalInterrupt, SignalQuit, SignalKill, SignalUser1, SignalUser2, SignalTerminate}

// A TerminalSize is the size of a terminal in characters. It is a plain value.
type TerminalSize struct {
	Columns uint16 `json:"columns"`
	Rows    uint16 `json:"rows"`
}

// A Program is what somebody wants to run in a container. It is a plain value.
type Program struct {
	// Command is the program, which is looked up in the container's PATH if it has
	// no slash, and its arguments.
	Command []string `json:"command"`
	// Terminal gives the program a terminal of that size; nil gives it pipes.
	Terminal *TerminalSize `json:"terminal,omitempty"`
	// TerminalType is the TERM of the program's environment, such as "xterm". It
	// is for programs with a terminal, and may be empty.
	TerminalType string `json:"terminal_type,omitempty"`
}

// The limits of a Program.
const (
	MaxCommandBytes      = 64 << 10
	MaxTerminalTypeBytes = 64
)

// Validate reports fields outside their limits.
func (p *Program) Validate(v *Validator) {
	size := 0
	for i, arg := range p.Command {
		size += len(arg) + 1
		for _, c := range []byte(arg) {
			v.Check(c != 0, fmt.Sprintf("command[%d]", i), arg, "without NUL")
		}
	}
	v.Check(len(p.Command) > 0 && p.Command[0] != "", "command", "", "a program")
	v.Check(size <= MaxCommandBytes, "command", size, fmt.Sprintf("at most %d bytes", MaxCommandBytes))
	fits := len(p.TerminalType) <= MaxTerminalTypeBytes
	for _, c := range []byte(p.TerminalType) {
		fits = fits && c > ' ' && c < 0x7f && c != '/' // which would make it a path
	}
	v.Check(fits, "terminal_type", p.TerminalType, fmt.Sprintf("at most %d printable characters without space and slash", MaxTerminalTypeBytes))
}

// Streams connect a caller with a program. A nil field means no input, discarded
// output, or no control. One program uses the Streams, each field from a goroutine
// of its own. A Read or Write that has begun may return after the program: after a
// failure nobody waits for it.
type Streams struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Control changes what runs.
	Control <-chan SessionControl
}

// A SessionControl does what is set. It is a plain value.
type SessionControl struct {
	// Resize is the new size of the terminal.
	Resize *TerminalSize `json:"resize,omitempty"`
	// Signal is sent to the program.
	Signal SessionSignal `json:"signal,omitempty"`
}

// ErrNoSession is wrapped by every [SessionError].
var ErrNoSession = errors.New("no session")

// A SessionError says why nobody can work in a container now.
type SessionError struct {
	GUID string `json:"container_guid"`
	Why  string `json:"why"`
}

func (e *SessionError) Error() string {
	return fmt.Sprintf("container %q: %v: %s", e.GUID, ErrNoSession, e.Why)
}

// Unwrap makes errors.Is(err, ErrNoSession) true.
func (e *SessionError) Unwrap() error { return ErrNoSession }
