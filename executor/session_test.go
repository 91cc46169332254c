package executor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
)

func TestProgramsOutsideTheirLimitsAreNamed(t *testing.T) {
	size := &executor.TerminalSize{Columns: 80, Rows: 24}
	for _, tt := range []struct {
		program executor.Program
		field   string
	}{
		{executor.Program{Command: []string{"sh"}}, ""},
		{executor.Program{Command: []string{"sh", "-c", "", "ü\n"}, Terminal: size, TerminalType: "xterm-256color"}, ""},
		{executor.Program{}, "command"},
		{executor.Program{Command: []string{""}}, "command"},
		{executor.Program{Command: []string{"sh", "a\x00b"}}, "command[1]"},
		{executor.Program{Command: []string{"sh", strings.Repeat("x", executor.MaxCommandBytes)}}, "command"},
		{executor.Program{Command: []string{"sh"}, TerminalType: "../xterm"}, "terminal_type"},
		{executor.Program{Command: []string{"sh"}, TerminalType: "x term"}, "terminal_type"},
		{executor.Program{Command: []string{"sh"}, TerminalType: strings.Repeat("x", executor.MaxTerminalTypeBytes+1)}, "terminal_type"},
	} {
		var v executor.Validator
		tt.program.Validate(&v)
		var invalid *executor.ValidationError
		switch err := v.Err(); {
		case tt.field == "" && err != nil:
			t.Errorf("%+v: %v", tt.program, err)
		case tt.field != "" && (!errors.As(err, &invalid) || invalid.Fields[0].Field != tt.field):
			t.Errorf("%.80v: %v, want an error of %s", tt.program, err, tt.field)
		}
	}
}

func TestASessionErrorSaysWhichContainerAndWhy(t *testing.T) {
	err := &executor.SessionError{GUID: "web-0", Why: "it is COMPLETED"}
	if !errors.Is(err, executor.ErrNoSession) || err.Error() != `container "web-0": no session: it is COMPLETED` {
		t.Errorf("%v", err)
	}
}
