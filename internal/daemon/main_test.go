package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/internal/testenv"
)

func TestADaemonEndsAsItsRunDoes(t *testing.T) {
	tests := []struct {
		name   string
		args   []string
		run    func(context.Context, *slog.Logger) error
		status int
		stderr string
	}{
		{"done", nil, func(context.Context, *slog.Logger) error { return nil }, 0, "stopped"},
		{"failed", nil, func(context.Context, *slog.Logger) error { return errors.New("the disk is full") }, ExitFailed, `err="the disk is full"`},
		{"cancelled by itself", nil, func(context.Context, *slog.Logger) error { return context.Canceled }, ExitFailed, "failed"},
		{"settings", []string{"--log-level", "loud"}, nil, ExitSettings, "command line: --log-level: loud: want one of debug, info, warn, error"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var stderr testenv.Output
			p := program{name: "sample", stderr: &stderr}
			if status := p.main(tt.args, new(Logging), tt.run); status != tt.status || !strings.Contains(stderr.String(), tt.stderr) {
				t.Errorf("status %d, %s", status, stderr.String())
			}
		})
	}
}

func TestHelpGoesToTheStandardOutput(t *testing.T) {
	var stdout, stderr testenv.Output
	p := program{name: "sample", summary: "shows", stdout: &stdout, stderr: &stderr}
	if status := p.main([]string{"-h"}, new(Logging), nil); status != 0 || !strings.HasPrefix(stdout.String(), "sample: shows\n") || stderr.String() != "" {
		t.Errorf("status %d, %q, %q", status, stdout.String(), stderr.String())
	}
}

func TestTheFirstSignalStopsAndTheSecondEndsAtOnce(t *testing.T) {
	signals := make(chan os.Signal)
	exited := make(chan int)
	var stderr testenv.Output
	p := program{name: "sample", stderr: &stderr, signals: signals, exit: func(status int) { exited <- status }}
	status := p.main(nil, new(Logging), func(ctx context.Context, _ *slog.Logger) error {
		signals <- syscall.SIGTERM
		<-ctx.Done()
		signals <- syscall.SIGINT
		if got := <-exited; got != 130 {
			t.Errorf("exit status %d", got)
		}
		return ctx.Err()
	})
	if status != 0 || !strings.Contains(stderr.String(), "the same signal again ends the process at once") {
		t.Errorf("status %d, %s", status, stderr.String())
	}
}

// hungUp is set in a copy of this process that is a daemon.
const hungUp = "DIEGO_TEST_DAEMON"

func TestADaemonSurvivesAHangup(t *testing.T) {
	if os.Getenv(hungUp) != "" {
		os.Args = []string{"sample"}
		Main("sample", "shows", new(Logging), func(ctx context.Context, log *slog.Logger) error {
			self, err := os.FindProcess(os.Getpid())
			if err != nil {
				return err
			}
			for range 3 {
				if err := self.Signal(syscall.SIGHUP); err != nil {
					return err
				}
			}
			// What it starts is not deaf for it.
			if out, err := exec.CommandContext(ctx, "sh", "-c", "kill -HUP $$; echo survived").Output(); err == nil || len(out) > 0 {
				return fmt.Errorf("a child: %q, %v", out, err)
			}
			log.Info("still here")
			if err := self.Signal(syscall.SIGTERM); err != nil {
				return err
			}
			<-ctx.Done()
			return ctx.Err()
		})
	}
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), hungUp+"=yes")
	out, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "still here") || !strings.Contains(string(out), "stopped") {
		t.Errorf("%v: %s", err, out)
	}
}
