// Package terminal has the terminal at which the user sits, if there is one.
package terminal

import (
	"os"

	"golang.org/x/term"

	"github.com/diegosdk/diego/executor"
)

// A Terminal is that of the user.
type Terminal interface {
	// Raw lets every key through, until restore is called.
	Raw() (restore func(), err error)
	Size() (executor.TerminalSize, error)
	// Resized says that the size may have changed, until stop is called. It may be
	// nil.
	Resized() (changes <-chan os.Signal, stop func())
}

// Of is the terminal that a file is, or nil.
func Of(f *os.File) Terminal {
	if !term.IsTerminal(int(f.Fd())) {
		return nil
	}
	return fileTerminal{f}
}

// Width reports whether a file is a terminal, and its width in characters, 0 if
// that is not known.
func Width(f *os.File) (width int, ok bool) {
	if !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	if width, _, err := term.GetSize(int(f.Fd())); err == nil {
		return width, true
	}
	return 0, true
}

type fileTerminal struct{ f *os.File }

func (t fileTerminal) Raw() (restore func(), err error) {
	before, err := term.MakeRaw(int(t.f.Fd()))
	if err != nil {
		return nil, err
	}
	return func() { _ = term.Restore(int(t.f.Fd()), before) }, nil // a terminal that is gone needs nothing
}

func (t fileTerminal) Size() (executor.TerminalSize, error) {
	columns, rows, err := term.GetSize(int(t.f.Fd()))
	return executor.TerminalSize{Columns: uint16(columns), Rows: uint16(rows)}, err
}

func (t fileTerminal) Resized() (<-chan os.Signal, func()) { return windowChanges() }
