package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

func logsCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "logs GUID [INDEX]", Short: "Show what an instance, all instances of a process, or a task writes", RunE: p.runs(logs), ValidArgsFunction: cli.Completes(p.allGUIDs(), nil),
		Long: `Show what an instance, all instances of a process, or a task writes. Following
one instance goes on in the container that takes the place of a crashed one, and
when a cell or BBS that was lost is back. Of a container that is gone, its cell
keeps the end of what it wrote for a while. On a terminal, control characters
are shown as \x1b; a pipe or a file gets everything as it was written.`,
		Example: "  diegoctl logs greeter/0 --follow\n  diegoctl logs greeter 0\n  diegoctl logs greeter/0 --previous\n  diegoctl logs sum",
	}, []cli.Flag{
		{Name: "labels", Kind: cli.Switch, Help: "print before each line its labels, as JSON: log_guid, source, index, stream, tags and others"},
		{Name: "follow", Kind: cli.Switch, Help: "wait for more until interrupted"},
		{Name: "previous", Kind: cli.Switch, Help: "the container that an instance had before the present one"},
		{Name: "stream", Kind: cli.OneOf("STREAM", "stdout", "stderr", "health"), Default: "stdout", Help: "stdout, stderr or health, which has what checks of health say"},
	})
}

// logs writes the output of one instance, of all instances of a process, or of
// a task.
func logs(c *call) error {
	previous := c.on("previous")
	switch {
	case previous && c.arg(1) == "":
		return cli.Wrong("--previous wants an instance, such as %s/0", c.arg(0))
	case previous && c.on("follow"):
		return cli.Wrong("--previous and --follow do not go together: what is gone writes no more")
	}
	r, err := c.remote()
	if err != nil {
		return err
	}
	if previous {
		return c.logsOfPrevious(r, c.arg(0), c.argNumber(1))
	}
	if c.arg(1) != "" {
		return c.logsOfInstance(r, c.arg(0), c.argNumber(1))
	}
	sources, err := c.sources(r, c.arg(0))
	if err != nil {
		return err
	}
	switch {
	case len(sources) == 1 && sources[0].index >= 0:
		return c.logsOfInstance(r, c.arg(0), sources[0].index)
	case len(sources) == 1:
		return c.copyLog(c.ctx, r, &sources[0], c.Out)
	}
	// A failure of one ends all: what is left out unseen is worse.
	ctx, cancel := context.WithCancelCause(c.ctx)
	defer cancel(nil)
	merged := &show.Merger{Out: c.Out, Colour: c.Colour}
	copyAll := func(s source) error {
		out := merged.Source(s.name)
		return errors.Join(c.copyLog(ctx, r, &s, out), out.Flush())
	}
	if !c.on("follow") {
		for _, s := range sources {
			if err := copyAll(s); err != nil {
				return err
			}
		}
		return nil
	}
	var reading sync.WaitGroup
	for _, s := range sources {
		reading.Go(func() {
			if err := copyAll(s); err != nil {
				cancel(err)
			}
		})
	}
	reading.Wait()
	return context.Cause(ctx)
}

// logsOfInstance follows an index, if asked to, from one container to the next
// that takes its place, and past times in which a server cannot be reached.
func (c *call) logsOfInstance(r *remote, guid string, index int) error {
	var seen source
	lost := false // the connection to what was seen; it has more to say
	follow := c.on("follow")
	var news <-chan struct{}
	if follow {
		ctx, cancel := context.WithCancel(c.ctx)
		defer cancel()
		news = c.news(ctx)
	}
	for {
		s, why, err := c.instanceSource(r, guid, index)
		switch {
		case err != nil:
		case s.container == "" && !follow:
			return &missingError{why}
		case s.container != "" && s.container != seen.container:
			if seen.container != "" {
				c.note("--- %s goes on in container %s on %s", s.name, s.container, s.cellID)
			}
			seen = s
			err = c.copyLog(c.ctx, r, &seen, c.Out)
		case s.container != "" && lost:
			err = c.copyLog(c.ctx, r, &seen, c.Out)
		}
		// A cell that is lost may be known no more, until it is back or replaced.
		cut := errors.Is(err, httpapi.ErrNoAnswer) || errors.Is(err, httpapi.ErrUnreachable) || lost && holds[*missingError](err)
		switch {
		case !follow:
			return err
		case c.ctx.Err() != nil:
			return nil
		case err != nil && (!cut || seen.container == ""):
			return err
		case cut && !lost:
			c.note("--- %s: %v; waiting for it", seen.name, err)
		}
		lost = cut
		select {
		case <-news:
		case <-c.after(time.Second):
		case <-c.ctx.Done():
			return nil
		}
	}
}

// logsOfPrevious writes what is kept of the container that an index had last,
// besides the one that it has.
func (c *call) logsOfPrevious(r *remote, guid string, index int) error {
	present, _, wrong := c.instanceSource(r, guid, index)
	if none := (*missingError)(nil); wrong != nil && !errors.Is(wrong, storage.ErrNotFound) && !errors.As(wrong, &none) {
		return wrong
	}
	entries, err := r.bbs.Timeline(c.ctx, guid, index) // also of what is not desired any more
	if err != nil {
		return errors.Join(wrong, err)
	}
	for _, entry := range slices.Backward(entries) {
		for _, record := range []*lrp.ActualLRP{entry.Event.After, entry.Event.Before} {
			if record != nil && record.InstanceGUID != "" && record.InstanceGUID != present.container {
				return c.copyLog(c.ctx, r, &source{cellID: record.CellID, container: record.InstanceGUID, index: index}, c.Out)
			}
		}
	}
	if wrong != nil {
		return wrong
	}
	return &missingError{fmt.Sprintf("%s/%d has had no container before the present one, as far back as the events go", guid, index)}
}

// copyLog writes the output of a container, and notes in s how far it has come.
// Following one ends when the container is deleted, or when the user ends it.
func (c *call) copyLog(ctx context.Context, r *remote, s *source, to io.Writer) (err error) {
	p, err := c.findCell(r, s.cellID)
	if err != nil {
		return err
	}
	client, err := r.cell(p)
	if err != nil {
		return err
	}
	labelled := c.on("labels")
	source, ok := to.(*show.Source)
	if !ok && labelled {
		source = (&show.Merger{Out: to, Colour: c.Colour}).Source(s.name)
		to = source
		defer func() { err = errors.Join(err, source.Flush()) }()
	}
	request := rep.LogRequest{ContainerGUID: s.container, Stream: c.text("stream"), From: s.next, Follow: c.on("follow")}
	if c.terminal {
		to = &show.Visible{Out: to}
	}
	for chunk, err := range client.Logs(ctx, request) {
		switch {
		case errors.Is(err, storage.ErrNotFound):
			if request.Follow {
				return nil // it was deleted, or has not begun; the records say what follows
			}
			return &missingError{fmt.Sprintf("cell %s has no output of container %s", s.cellID, s.container)}
		case err != nil && ctx.Err() != nil:
			return nil
		case err != nil:
			return &cellError{s.cellID, err}
		}
		if labelled && chunk.Labels != nil {
			if err := source.Rename(logLabelText(chunk.Labels)); err != nil {
				return err
			}
		}
		if _, err := to.Write(chunk.Data); err != nil {
			return err
		}
		s.next = chunk.Next
	}
	return nil
}

// logLabelText is the labels in JSON, without what could change a terminal.
func logLabelText(l *rep.LogLabels) string {
	text, err := json.Marshal(l)
	if err != nil { // there is nothing in labels that JSON cannot have
		return err.Error()
	}
	return string(show.EscapeJSON(text))
}
