package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/filecopy"
	"github.com/diegosdk/diego/rep"
)

func execCommand(p *process) *cobra.Command {
	return cli.With(&cobra.Command{
		Use: "exec INSTANCE COMMAND...", Short: "Run a command in the container of an instance or a task", RunE: p.asks(execute), ValidArgsFunction: cli.Completes(p.allGUIDs()),
		Long: `Run a command in the container of an instance or a task, with the user, the
limits, the directory and the environment of its process. INSTANCE is GUID/INDEX,
the guid of a task, or that of a process with one instance.

The exit code is the command's, or 128 plus the number of the signal that ended
it. Without --tty, stdout and stderr stay apart, and an interrupt is sent
to the command; a second one ends diegoctl. When diegoctl ends, the command and
all that it has started are killed. The log of events says who ran what.`,
		Example: "  diegoctl exec web/0 -it -- sh\n  diegoctl exec web/0 -- ls -l /tmp\n  diegoctl exec web/0 -i -- sh -c 'cat >/tmp/data' <data",
	}, []cli.Flag{
		{Name: "stdin", Short: "i", Kind: cli.Switch, Help: "pass stdin to the command"},
		{Name: "tty", Short: "t", Kind: cli.Switch, Help: "give the command a terminal, and pass stdin, which must be a terminal, too"},
	})
}

func copyCommand(p *process) *cobra.Command {
	return &cobra.Command{
		Use: "cp SOURCE TARGET", Short: "Copy a file or directory into a container, or out of it", RunE: p.asks(copyFiles), ValidArgsFunction: cli.Completes(nil, nil),
		Long: `Copy a file or directory into the container of an instance or a task, or out of
it. One of SOURCE and TARGET is INSTANCE:PATH with an absolute path; INSTANCE is
as for exec. The copy goes into TARGET if that is a directory, and otherwise
becomes TARGET, in a directory that must exist. A directory is merged into one of
its name, and a file replaces another; a file never replaces a directory, nor a
directory a file.

In the container, the copy is made with the rights of the user of its process: it
fails on files that this user may not read or write. Files that are copied in
belong to that user and count towards the disk limit. Symbolic links are copied as
links. A copy to this machine changes nothing before everything has arrived, and
in the container a file is replaced once all of it has arrived. The log of events
says who copied what.`,
		Example: "  diegoctl cp web/0:/var/log/app.log .\n  diegoctl cp settings.json web/0:/etc/app/",
	}
}

func execute(c *call, r *remote) error {
	request := rep.ExecRequest{Program: executor.Program{Command: c.args[1:]}}
	var v executor.Validator
	if request.Validate(&v); v.Err() != nil {
		return v.Err()
	}
	if c.on("tty") && c.own == nil {
		return cli.Wrong("--tty wants stdin to be a terminal; -i gives the command what stdin has")
	}
	container, cell, err := c.container(r, c.arg(0))
	if err != nil {
		return err
	}
	request.ContainerGUID = container
	control := make(chan executor.SessionControl)
	streams := executor.Streams{Stdout: c.stdout, Stderr: c.stderr, Control: control}
	if c.on("stdin") || c.on("tty") {
		streams.Stdin = c.stdin
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.ctx))
	defer cancel()
	if c.on("tty") {
		size, err := c.own.Size()
		if err != nil {
			return fmt.Errorf("the size of the terminal is not known: %w", err)
		}
		request.Terminal, request.TerminalType = &size, c.env("TERM")
		restore, err := c.own.Raw()
		if err != nil {
			return fmt.Errorf("the terminal cannot be used: %w", err)
		}
		defer restore()
		changes, stop := c.own.Resized()
		defer stop()
		go c.tellSizes(ctx, changes, control)
		defer context.AfterFunc(c.ctx, cancel)()
	} else {
		streams.Stdout, streams.Stderr = c.streams()
		defer context.AfterFunc(c.ctx, func() {
			select {
			case control <- executor.SessionControl{Signal: executor.SignalInterrupt}:
			case <-ctx.Done():
			}
		})()
	}
	end, err := cell.Exec(ctx, request, streams)
	switch {
	case err != nil:
		return err
	case end.Signal != 0:
		return &commandError{128 + end.Signal}
	case end.Status != 0:
		return &commandError{end.Status}
	}
	return nil
}

// tellSizes tells a program each new size of its terminal.
func (c *call) tellSizes(ctx context.Context, changes <-chan os.Signal, control chan<- executor.SessionControl) {
	for {
		select {
		case <-changes:
		case <-ctx.Done():
			return
		}
		size, err := c.own.Size()
		if err != nil {
			continue // it keeps the one that it has
		}
		select {
		case control <- executor.SessionControl{Resize: &size}:
		case <-ctx.Done():
			return
		}
	}
}

func copyFiles(c *call, r *remote) error {
	from, source, out := place(c.arg(0))
	to, target, in := place(c.arg(1))
	if in == out {
		return cli.Wrong("want one of %q and %q to be INSTANCE:/PATH, such as web/0:/tmp/file", c.arg(0), c.arg(1))
	}
	container, cell, err := c.container(r, from+to) // one of them is empty
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	stream, end := io.Pipe()
	sent := make(chan struct{})
	// The side that writes says in the stream why it ends.
	if in {
		go func() {
			defer close(sent)
			end.CloseWithError(filecopy.Send(ctx, end, source))
		}()
		err = cell.CopyIn(ctx, rep.CopyRequest{ContainerGUID: container, Path: target}, stream)
	} else {
		go func() {
			defer close(sent)
			end.CloseWithError(cell.CopyOut(ctx, rep.CopyRequest{ContainerGUID: container, Path: source}, end))
		}()
		err = filecopy.Receive(ctx, stream, target, path.Base(source), filecopy.Limits{})
	}
	stream.Close()
	cancel()
	<-sent
	if err != nil {
		return err
	}
	return c.Say(map[string]string{"done": "copied", "source": c.arg(0), "target": c.arg(1)}, "%s is copied to %s", c.arg(0), c.arg(1))
}
