package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

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
}

// A call is one command that is carried out.
type call struct {
	*process
	parsed
	ctx context.Context
	// remote is dialled when it is needed first.
	reached *remote
	// out is where show writes: stdout, or a frame of a watch.
	out io.Writer
}

// run carries out a command line and returns the exit code.
func run(ctx context.Context, line []string, p *process) int {
	c := &call{process: p, ctx: ctx, out: p.stdout}
	var err error
	c.parsed, err = parse(line)
	if err == nil {
		err = c.do()
	}
	return c.exit(err, line)
}

// do carries the command out, once or, with -watch, again and again.
func (c *call) do() error {
	if err := c.checkEnvironment(); err != nil {
		return err
	}
	var err error
	if c.on("watch") {
		err = c.watch()
	} else {
		err = c.command.run(c)
	}
	if c.ctx.Err() != nil && (c.on("watch") || c.on("follow")) {
		return nil // the only way to end it is no failure
	}
	return err
}

// remote is the Diego that the flags name.
func (c *call) remote() (*remote, error) {
	if c.reached != nil {
		return c.reached, nil
	}
	conn := connection{
		data: cmp.Or(c.flag("data"), fleetdir.Default()),
		bbs:  addresses(c.flag("bbs")), auctioneer: addresses(c.flag("auctioneer")),
		cert: c.flag("cert"), key: c.flag("key"), ca: c.flag("ca"), timeout: c.duration("timeout"),
	}
	if conn.auctioneer == nil {
		conn.auctioneer = conn.bbs
	}
	if conn.bbs == nil && conn.cert+conn.ca != "" {
		return nil, wrongUse(c.command, "-cert, -key and -ca are for the BBS that -bbs (DIEGO_BBS) names, and there is none")
	}
	if (conn.cert == "") != (conn.key == "") {
		return nil, wrongUse(c.command, "-cert and -key come together, or neither of them")
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

// forPrograms reports whether the output is for programs.
func (c *call) forPrograms() bool { return c.flag("o") == "json" }

func (c *call) colour() bool {
	switch c.flag("color") {
	case "always":
		return true
	case "never":
		return false
	}
	return c.terminal && c.env("NO_COLOR") == ""
}

// A view is what a command shows.
type view struct {
	// about comes first, as lines of a name and a value.
	about [][2]string
	// heading and rows are a table. Each row has what programs get of it.
	heading []string
	rows    []row
	// empty is said where there are no rows.
	empty string
	// doc, unless it is nil, is what programs get in place of the rows'.
	doc any
	// notes come last, a paragraph each.
	notes []string
}

// A row is a line of a table.
type row struct {
	doc   any
	cells []cell
}

func (v *view) add(doc any, cells ...cell) { v.rows = append(v.rows, row{doc, cells}) }

// show writes a view, for people or for programs.
func (c *call) show(v *view) error {
	if c.forPrograms() {
		if v.doc != nil {
			return c.emit(v.doc)
		}
		for _, r := range v.rows {
			if err := c.emit(r.doc); err != nil {
				return err
			}
		}
		return nil
	}
	var out bytes.Buffer
	about := &table{}
	for _, line := range v.about {
		about.rows = append(about.rows, []cell{{line[0], faint}, text(line[1])})
	}
	out.WriteString(about.draw(c.width, c.colour()))
	list := &table{heading: v.heading}
	for _, r := range v.rows {
		list.rows = append(list.rows, r.cells)
	}
	switch {
	case len(v.rows) > 0:
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		out.WriteString(list.draw(c.width, c.colour()))
	case v.empty != "":
		if out.Len() > 0 {
			out.WriteByte('\n')
		}
		fmt.Fprintln(&out, v.empty)
	}
	for _, note := range v.notes {
		out.WriteByte('\n')
		for _, line := range wrap(note, c.width) {
			fmt.Fprintln(&out, line)
		}
	}
	_, err := c.out.Write(out.Bytes())
	return err
}

// emit writes one document on one line.
func (c *call) emit(doc any) error {
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(doc); err != nil {
		return err
	}
	_, err := c.out.Write(line.Bytes())
	return err
}

// A done document tells programs what a command has done.
type done struct {
	Done        string `json:"done"`
	ProcessGUID string `json:"process_guid,omitempty"`
	Index       *int   `json:"index,omitempty"`
	TaskGUID    string `json:"task_guid,omitempty"`
	CellID      string `json:"cell_id,omitempty"`
	Domain      string `json:"domain,omitempty"`
}

// say tells what was done.
func (c *call) say(doc done, format string, args ...any) error {
	if c.forPrograms() {
		return c.emit(doc)
	}
	_, err := fmt.Fprintf(c.out, format+"\n", args...)
	return err
}

// until looks again and again until look says that it is done: whenever
// something has happened, and every second. It gives up after -for, with what
// look said last.
func (c *call) until(look func() (done bool, state string, err error)) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	end := c.after(c.duration("for"))
	news := c.news(ctx)
	for {
		done, state, err := look()
		if done || err != nil {
			return err
		}
		select {
		case <-news:
		case <-c.after(time.Second):
		case <-end:
			return &patienceError{c.flag("for"), state}
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
}

// A patienceError says that something was waited for in vain.
type patienceError struct{ limit, state string }

func (e *patienceError) Error() string {
	return fmt.Sprintf("not done after %s: %s", e.limit, e.state)
}
