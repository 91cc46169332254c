//go:build unix && !linux

package stdio

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/diegosdk/diego/executor"
)

// OpenTerminal fails: terminals are made as Linux makes them.
func OpenTerminal(string, int, int) (master, slave *os.File, err error) {
	return nil, nil, fmt.Errorf("%w: terminals need Linux; run the program without one", executor.ErrUnsupported)
}

func resize(*os.File, executor.TerminalSize) error { return nil }

func isEIO(err error) bool { return errors.Is(err, syscall.EIO) }
