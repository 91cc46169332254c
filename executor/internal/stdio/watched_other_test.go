//go:build unix && !linux

package stdio_test

import (
	"io"
	"testing"

	"github.com/diegosdk/diego/executor/internal/stdio"
)

// openers are the ways to make a Pipe.
func openers(*testing.T) map[string]func(io.Writer, *stdio.Pace) (*stdio.Pipe, error) {
	return map[string]func(io.Writer, *stdio.Pace) (*stdio.Pipe, error){"with a goroutine": stdio.New}
}
