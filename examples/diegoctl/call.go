package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/examples/diegoctl/internal/terminal"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/fleetdir"
)

// A process is what the process that diegoctl runs in offers it.
type process struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	env            func(name string) string
	now            func() time.Time
	// after makes the pauses between two looks.
	after func(time.Duration) <-chan time.Time
	dial  func(connection) (*remote, error)
	// examine finds out what this host can do for a cell with a directory.
	examine func(ctx context.Context, dir string) daemon.Examination
	// terminal is true if stdout is one; width is its width, 0 if not known.
	terminal bool
	width    int
	// stderrTerminal is true if stderr is a terminal.
	stderrTerminal bool
	// own is the terminal of stdin, nil if stdin is none.
	own terminal.Terminal
}

// A call is one command that is carried out.
type call struct {
	*process
	show.Printer
	cmd  *cobra.Command
	args []string
	ctx  context.Context
	// reached is dialled when it is needed first.
	reached *remote
}

// call is a call of cmd. Its flags have been read.
func (p *process) call(cmd *cobra.Command, args []string) *call {
	c := &call{process: p, cmd: cmd, args: args, ctx: cmd.Context()}
	c.Printer = show.Printer{Out: p.stdout, Programs: c.text("output") == "json", Width: p.width}
	switch c.text("color") {
	case "auto":
		c.Colour = p.terminal && p.env("NO_COLOR") == ""
	case "always":
		c.Colour = true
	}
	return c
}

// streams returns stdout and stderr for bytes that come from a container. A container
// is not trusted with a terminal, and each of the two may be one without the other.
func (p *process) streams() (stdout, stderr io.Writer) {
	stdout, stderr = p.stdout, p.stderr
	if p.terminal {
		stdout = &show.Visible{Out: stdout}
	}
	if p.stderrTerminal {
		stderr = &show.Visible{Out: stderr}
	}
	return stdout, stderr
}

// note writes a line to stderr. Names and errors of tenants in it cannot change the
// terminal.
func (p *process) note(format string, args ...any) {
	fmt.Fprintln(p.stderr, show.Printable(fmt.Sprintf(format, args...)))
}

// An action is what a command does.
type action func(c *call) error

// runs makes an action what a command of cobra runs: once or, with --watch,
// again and again.
func (p *process) runs(do action) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		args, err := cli.Arguments(cmd, args)
		if err != nil {
			return err
		}
		c := p.call(cmd, args)
		if c.on("watch") {
			err = c.watch(do)
		} else {
			err = do(c)
		}
		if c.ctx.Err() != nil && (c.on("watch") || c.on("follow")) {
			err = nil // the only way to end it is no failure
		}
		if err != nil {
			return &actionError{err}
		}
		return nil
	}
}

// asks is runs for an action that begins with a question to the Diego that the
// flags name.
func (p *process) asks(do func(c *call, r *remote) error) func(*cobra.Command, []string) error {
	return p.runs(func(c *call) error {
		r, err := c.remote()
		if err != nil {
			return err
		}
		return do(c, r)
	})
}

// An actionError is an error of a command itself. Others are about the command
// line.
type actionError struct{ error }

func (e *actionError) Unwrap() error { return e.error }

// remote is the Diego that the flags name.
func (c *call) remote() (*remote, error) {
	if c.reached != nil {
		return c.reached, nil
	}
	conn := connection{
		data: cmp.Or(c.text("data"), fleetdir.Default()),
		bbs:  addresses(c.text("bbs")), auctioneer: addresses(c.text("auctioneer")),
		cert: c.text("cert"), key: c.text("key"), ca: c.text("ca"), timeout: c.duration("timeout"),
	}
	if conn.auctioneer == nil {
		conn.auctioneer = conn.bbs
	}
	if conn.bbs == nil && conn.cert+conn.ca != "" {
		return nil, cli.Wrong("--cert, --key and --ca are for the BBS that --bbs (DIEGO_BBS) names, and there is none")
	}
	if (conn.cert == "") != (conn.key == "") {
		return nil, cli.Wrong("give both --cert and --key, or neither")
	}
	r, err := c.dial(conn)
	c.reached = r
	return r, err
}

func addresses(text string) (list []string) {
	for a := range strings.SplitSeq(text, ",") {
		if a = strings.TrimSpace(a); a == "" {
			continue
		}
		if !strings.Contains(a, "://") {
			a = "https://" + a
		}
		list = append(list, strings.TrimRight(a, "/"))
	}
	return list
}

// The values of flags and arguments, which have been checked.

func (c *call) text(flag string) string { return c.cmd.Flag(flag).Value.String() }

// on reports whether the command has the switch and it was given.
func (c *call) on(flag string) bool {
	f := c.cmd.Flag(flag)
	return f != nil && f.Value.String() == "true"
}

func (c *call) given(flag string) bool { return c.cmd.Flag(flag).Changed }

func (c *call) list(flag string) []string { return cli.List(c.cmd.Flag(flag)) }

func (c *call) number(flag string) int {
	n, _ := strconv.Atoi(c.text(flag))
	return n
}

func (c *call) duration(flag string) time.Duration {
	d, _ := time.ParseDuration(c.text(flag))
	return d
}

// arg is an argument by position, or empty.
func (c *call) arg(i int) string {
	if i < len(c.args) {
		return c.args[i]
	}
	return ""
}

func (c *call) argNumber(i int) int {
	n, _ := strconv.Atoi(c.arg(i))
	return n
}

// A done document tells programs what a command has done.
type done struct {
	Done        string `json:"done"`
	ProcessGUID string `json:"process_guid,omitempty"`
	Index       *int   `json:"index,omitempty"`
	TaskGUID    string `json:"task_guid,omitempty"`
	CellID      string `json:"cell_id,omitempty"`
	Domain      string `json:"domain,omitempty"`
	// State is that of something that is waited for.
	State string `json:"state,omitempty"`
}
