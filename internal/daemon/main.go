package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/diegosdk/diego/internal/version"
)

// Exit statuses of Main. After a second signal the status is 128 plus the signal's
// number, as in a shell.
const (
	ExitFailed   = 1
	ExitSettings = 2
)

// Settings are what [Main] loads. A struct that embeds [Logging] implements it.
type Settings interface {
	Logger(w io.Writer) *slog.Logger
}

// Main is the main function of a daemon: it loads the settings, begins a log on
// the standard error output, and calls run with a context that ends with the
// first SIGINT or SIGTERM. A second one ends the process at once. SIGHUP does
// nothing: a daemon outlives the terminal from which it was started. Main does
// not return.
func Main(name, summary string, settings Settings, run func(context.Context, *slog.Logger) error) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	// SIGHUP is caught, not ignored, because child processes would inherit
	// that.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP)
	p := program{name, summary, os.Stdout, os.Stderr, signals, os.Exit}
	os.Exit(p.main(os.Args[1:], settings, run))
}

// A program is the part of its surroundings that Main uses.
type program struct {
	name, summary  string
	stdout, stderr io.Writer
	signals        <-chan os.Signal
	exit           func(status int)
}

func (p *program) main(args []string, settings Settings, run func(context.Context, *slog.Logger) error) (status int) {
	switch err := Load(settings, args); {
	case errors.Is(err, ErrHelp):
		Help(p.stdout, p.name, p.summary, settings, errors.Is(err, ErrHelpAll))
		return 0
	case errors.Is(err, ErrVersion):
		_ = version.Print(p.stdout, p.name)
		return 0
	case err != nil:
		fmt.Fprintf(p.stderr, "%s cannot start with these settings (-h explains them):\n%v\n", p.name, err)
		return ExitSettings
	}
	log := settings.Logger(p.stderr)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go p.watch(ctx, cancel, log)
	err := run(ctx, log)
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		log.Info("stopped", "daemon", p.name)
		return 0
	}
	log.Error("failed", "daemon", p.name, "err", err)
	return ExitFailed
}

// watch ends the context at the first signal and the process at the second. It
// continues after run's context has ended, because stopping may take long.
func (p *program) watch(ctx context.Context, cancel func(), log *slog.Logger) {
	select {
	case s := <-p.signals:
		log.Info("stopping; the same signal again ends the process at once", "signal", s)
		cancel()
	case <-ctx.Done():
		return
	}
	s := <-p.signals
	log.Warn("ending at once", "signal", s)
	number, _ := s.(syscall.Signal)
	p.exit(128 + int(number))
}
