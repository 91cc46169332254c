package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/examples/diegoctl/internal/child"
	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/examples/diegoctl/internal/show"
	"github.com/diegosdk/diego/storage"
)

func lockCommands(p *process) *cobra.Command {
	return cli.Group(&cobra.Command{Use: "lock", Short: "Locks of processes of which only one may act"},
		cli.With(&cobra.Command{
			Use: "list [NAME]", Short: "List the locks that are held", RunE: p.asks(lockList),
			Long: `List the locks that are held: all, or the one with a name. A locker has to name
one of the locks of its certificate.`,
		}, watchFlags),
		cli.With(&cobra.Command{
			Use: "hold NAME COMMAND...", Short: "Run a command while a lock is held", RunE: p.asks(lockHold),
			Long: `Run a command while a lock is held. It waits for the lock, runs the command,
renews the lock until the command has ended, and releases it. The exit code is
the command's.

The command finds the lock in DIEGO_LOCK and its epoch in DIEGO_LOCK_EPOCH. If
the lock is lost, the command gets SIGTERM, and SIGKILL after a quarter of the
TTL if it has not ended by then, which is before another process can have the
lock. The same happens when diegoctl is interrupted. Signals reach the command
itself, not what it starts: let a shell exec the last command. On Linux the
command is also killed when diegoctl is.`,
			Example: "  diegoctl lock hold router/dns -- ./update-dns --every 30s\n  diegoctl lock hold nightly --ttl 1m -- sh -c 'prepare; exec run'",
		}, []cli.Flag{
			{Name: "ttl", Kind: cli.Duration, Default: "15s", Help: "how long the lock stays with a holder that has died, 1s to 10m"},
			{Name: "owner", Kind: cli.Text, Help: "who holds it, for people (without it: host and process id)"},
			{Name: "value", Kind: cli.Text, Help: "what others may know, such as an address"},
		}),
	)
}

func lockList(c *call, r *remote) error {
	list, err := r.locks.Locks(c.ctx, c.arg(0))
	if err != nil {
		return err
	}
	empty := "no lock is held"
	if c.arg(0) != "" {
		empty = "nobody holds the lock " + c.arg(0)
	}
	v := &show.View{Heading: []string{"LOCK", "OWNER", "VALUE", "EPOCH", "ENDS"}, Empty: empty}
	for _, l := range list {
		v.Add(l, show.Text(l.Name), show.Text(l.Owner), show.Text(cmp.Or(l.Value, "-")), show.Text(strconv.FormatInt(l.Epoch, 10)),
			show.Text("in "+show.Short(l.ExpiresAt.Sub(c.now()))))
	}
	return c.Show(v)
}

func lockHold(c *call, r *remote) error {
	program, err := exec.LookPath(c.arg(1))
	if err != nil {
		return err
	}
	ttl := c.duration("ttl")
	if ttl == 0 {
		return cli.Wrong("--ttl is %s; want %v to %v", c.text("ttl"), bbs.MinLockTTL, bbs.MaxLockTTL)
	}
	said := false
	return bbs.HoldLock(c.ctx, bbs.HoldOptions{
		Locks: r.locks, Name: c.arg(0), Owner: cmp.Or(c.text("owner"), thisProcess()), Value: c.text("value"), TTL: ttl,
		Waiting: func(err error) {
			if held := (*storage.HeldError)(nil); !said && errors.As(err, &held) {
				c.note("waiting for the lock %s, which %s holds", c.arg(0), held.Lease.Owner)
				said = true
			}
		},
	}, func(ctx context.Context, l bbs.Lock) error { return c.runLocked(ctx, program, l, ttl/4) })
}

// thisProcess is a name of this process for people.
func thisProcess() string {
	host, _ := os.Hostname()
	return fmt.Sprintf("%s:%d", cmp.Or(host, "localhost"), os.Getpid())
}

// runLocked runs the command of a lock. When ctx ends, the command has the grace
// to end.
func (c *call) runLocked(ctx context.Context, program string, l bbs.Lock, grace time.Duration) error {
	cmd := exec.CommandContext(ctx, program, c.args[2:]...)
	cmd.Args[0] = c.args[1]
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.stdin, c.stdout, c.stderr
	cmd.Env = append(os.Environ(), "DIEGO_LOCK="+l.Name, "DIEGO_LOCK_EPOCH="+strconv.FormatInt(l.Epoch, 10))
	err := child.Run(cmd, grace)
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), bbs.ErrLockLost):
		return ctx.Err() // it was interrupted
	case errors.As(err, &ended) && ended.ExitCode() > 0:
		return &commandError{ended.ExitCode()}
	}
	return err
}
