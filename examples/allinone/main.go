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
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/examples/allinone/account"
	"github.com/diegosdk/diego/examples/allinone/sample"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

const summary = "runs a whole Diego in this process, with a sample app and a task, and tells what happens.\n" +
	"Ctrl-C stops it; started again with the same -data it goes on."

func main() {
	if len(os.Args) > 1 && os.Args[1] == sample.Command {
		os.Exit(sample.Main(os.Args[2:]))
	}
	var s settings
	switch err := daemon.Load(&s, os.Args[1:]); {
	case errors.Is(err, daemon.ErrHelp):
		daemon.Help(os.Stdout, "allinone", summary, &s)
		return
	case err != nil:
		fmt.Fprintf(os.Stderr, "allinone cannot start with these settings (-h explains them):\n%v\n", err)
		os.Exit(daemon.ExitSettings)
	}
	stop, force := interrupts()
	if err := run(stop, force, &s, os.Stdout); err != nil && stop.Err() == nil {
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
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
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
func run(stop, force context.Context, s *settings, out io.Writer) (err error) {
	began := time.Now()
	file, err := readLRP(s.LRP)
	if err != nil {
		return err
	}
	told := account.New(lrp.RestartPolicy{})
	f, err := openFleet(stop, s, told.Placed)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.close(force)) }()
	f.introduce(out)

	events, err := f.BBS.Subscribe(stop, diego.FromNow, storage.EventFilter{})
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
	guided := f.guide(stop, out, began, 0)
	for e, err := range events {
		switch line, ok := told.Line(e); {
		case err != nil && stop.Err() == nil:
			fmt.Fprintln(out, err) // the list goes on, unless it is the last of it
		case ok:
			line.At = line.At.Local()
			fmt.Fprintln(out, line)
		}
		guided = guided || f.guide(stop, out, began, e.Sequence)
	}
	fail()
	fmt.Fprintln(out, "stopping; instances have 10 s to end, a second Ctrl-C kills them")
	running.Wait()
	fmt.Fprintln(out, "stopped; nothing runs any more")
	return nil
}
