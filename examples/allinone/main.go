// Command allinone runs a whole Diego in one process: control plane, cells, a
// sample app and a task, over a database in a directory. It tells what happens
// as it happens, and what to try.
//
//	go run ./examples/allinone
//
// It needs Go and a C compiler. As root on Linux the cells run real containers,
// anywhere else processes of the host.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/examples/allinone/account"
	"github.com/diegosdk/diego/examples/allinone/sample"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/version"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

const summary = "runs a whole Diego in this process, with a sample app and a task, and tells what happens.\n" +
	"Ctrl-C stops it; started again with the same --data it goes on."

func main() {
	if len(os.Args) > 1 && os.Args[1] == sample.Command {
		os.Exit(sample.Main(os.Args[2:]))
	}
	var s settings
	switch err := daemon.Load(&s, os.Args[1:]); {
	case errors.Is(err, daemon.ErrHelp):
		daemon.Help(os.Stdout, "allinone", summary, &s, errors.Is(err, daemon.ErrHelpAll))
		return
	case errors.Is(err, daemon.ErrVersion):
		_ = version.Print(os.Stdout, "allinone")
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "allinone cannot start with these settings (-h explains them):\n%v\n", err)
		os.Exit(daemon.ExitSettings)
	}
	stop, force := interrupts()
	if err := run(stop, force, &s, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "allinone: %v\n", err)
		os.Exit(daemon.ExitFailed)
	}
	if force.Err() != nil {
		os.Exit(128 + int(syscall.SIGINT))
	}
}

// interrupts returns a context that ends with the first signal to stop, and
// one that ends with the second.
func interrupts() (stop, force context.Context) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as under nohup
		signal.Notify(signals, syscall.SIGHUP)
	}
	stop, first := context.WithCancel(context.Background())
	force, second := context.WithCancel(context.Background())
	go func() {
		<-signals
		first()
		<-signals
		second()
	}()
	return stop, force
}

// run is the life of a fleet, until stop ends. With force it ends soon.
func run(stop, force context.Context, s *settings, out io.Writer) error {
	file, err := readLRP(s.LRP)
	if err != nil {
		return err
	}
	told := account.New(s.Restarts.Policy().Restart)
	f, err := openFleet(stop, s, told.Placed)
	opened := err == nil // else there may be containers of which no cell knows
	if opened {
		err = f.live(stop, force, s, file, told, out)
	}
	if stop.Err() != nil {
		err = nil // of what was cut short
	}
	left, closeErr := f.close(force)
	switch {
	case left > 0:
		fmt.Fprintf(out, "stopped; containers that could not be removed: %d; processes in them may go on until the next start with the same --data\n", left)
	case opened && err == nil && closeErr == nil:
		fmt.Fprintln(out, "stopped; nothing runs any more")
	}
	return errors.Join(err, closeErr)
}

// live returns when stop has ended, and the containers with it as far as they
// could be stopped.
func (f *fleet) live(stop, force context.Context, s *settings, file *lrp.DesiredLRP, told *account.Account, out io.Writer) error {
	f.introduce(out)
	events, err := f.BBS.Subscribe(stop, bbs.FromNow, storage.EventFilter{})
	if err == nil {
		err = f.lead(stop)
	}
	if err == nil && !s.NoSample {
		err = f.desireSample(stop)
	}
	if err == nil && file != nil {
		err = f.desireLRP(stop, *file)
	}
	if err != nil {
		return err
	}
	stop, fail := context.WithCancel(stop)
	defer fail()
	var running sync.WaitGroup
	running.Go(func() { f.run(stop, force) })
	running.Go(func() { watchDisk(stop, f.data, out) })
	guided := f.guide(stop, out, 0)
	for e, err := range events {
		switch line, ok := told.Line(e); {
		case err != nil && stop.Err() == nil:
			fmt.Fprintln(out, err) // the list goes on, unless it is the last of it
		case ok:
			line.At = line.At.Local()
			fmt.Fprintln(out, line)
		}
		guided = guided || f.guide(stop, out, e.Sequence)
	}
	fail()
	fmt.Fprintln(out, "stopping; instances have 10 s to end, a second Ctrl-C kills them")
	running.Wait()
	return nil
}
