package manager

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
)

// Probes take processor time of the daemon, not of the container, and a check may have
// an interval of a millisecond. So the probes of one container share a pace, of 50 checks
// per second at most, after the first of each and 100 at once. All containers have the same
// part of 1,000 checks per second, so one with many checks does not hold up those of the
// others. What a monitor runs counts as ten checks for each process and transfer, and as one
// for each emit_progress and each KiB of its texts. No pause becomes longer than a minute.
const (
	probeEvery, probeBurst = time.Second / 50, 100
	probeEveryOfCell       = time.Second / 1000
	monitorPart            = 10
	monitorText            = 1 << 10
	longestTurn            = time.Minute
)

// Probes of what is well, with longPause and more between two, begin at whole seconds. So
// several share what it takes to wake the daemon and a processor, which is a third of
// what a cell with idle containers costs.
const longPause, aligned = 10 * time.Second, time.Second

// inStep shortens a pause that begins now, so that it ends at a whole second.
func inStep(now time.Time, pause time.Duration) time.Duration {
	if pause < longPause {
		return pause
	}
	return now.Add(pause).Truncate(aligned).Sub(now)
}

// A probe asks again and again whether something is well: often until it is,
// and now and then afterwards (002 §Monitoring Health).
type probe struct {
	recipe *recipe
	build  func(done func(error)) step
	// interval is between two probes once it is well, at most.
	interval time.Duration
	weight   int // in checks

	ok      bool
	err     error // of the last probe
	step    step  // while one goes on
	timer   *timer
	stopped bool
}

// probes are those that say whether a container is healthy: its declarative
// checks or, without such, its monitor action.
func (b builder) probes(info executor.RunInfo) []*probe {
	if info.Check != nil && len(info.Check.Checks) > 0 {
		return b.from(info.Check.LogSource).checks(info.Check.Checks)
	}
	if info.Monitor == nil {
		return nil
	}
	return []*probe{{recipe: b.recipe, interval: b.recipe.entry.manager.options.HealthyInterval, weight: monitorWeight(*info.Monitor),
		build: func(done func(error)) step { return b.build(*info.Monitor, done) }}}
}

func monitorWeight(monitor executor.Action) int {
	weight := 0
	for a := range monitor.All() {
		switch p := a.EmitProgress; {
		case a.Run != nil || a.Download != nil || a.Upload != nil:
			weight += monitorPart
		case p != nil:
			weight += 1 + (len(p.StartMessage)+len(p.SuccessMessage)+len(p.FailureMessagePrefix))/monitorText
		}
	}
	return max(1, weight)
}

func (b builder) checks(checks []executor.Check) []*probe {
	var list []*probe
	for _, c := range checks {
		var interval time.Duration
		if c.TCP != nil {
			interval = c.TCP.Interval()
		} else {
			interval = c.HTTP.Interval()
		}
		orDefault(&interval, b.recipe.entry.manager.options.HealthyInterval)
		list = append(list, &probe{recipe: b.recipe, interval: interval, weight: 1, build: func(done func(error)) step {
			return b.check(c, done)
		}})
	}
	return list
}

// run probes, tells the outcome, and comes again until stop.
func (p *probe) run(tell func(*probe)) {
	m := p.recipe.entry.manager
	over := false
	s := p.build(func(err error) {
		over = true
		p.step = nil
		if p.stopped {
			p.recipe.finish()
			return
		}
		p.ok, p.err = err == nil, err
		now, pause := m.options.Now(), m.options.UnhealthyInterval
		if p.ok {
			pause = inStep(now, p.interval)
		}
		pause = max(pause, p.recipe.probeTurn(now, p.weight))
		p.timer = m.after(pause, func() { p.run(tell) })
		tell(p)
	})
	p.step = s
	s.start()
	if over {
		p.step = nil
	}
}

// probeTurn is how long a probe waits for the turn of its container.
func (r *recipe) probeTurn(now time.Time, weight int) time.Duration {
	r.probing.Every = max(probeEvery, time.Duration(len(r.entry.manager.entries))*probeEveryOfCell)
	return r.probing.Turn(now, weight)
}

// stop ends the probing. If a probe goes on, finish is called at its end.
func (p *probe) stop() {
	p.stopped = true
	p.recipe.entry.manager.forget(p.timer)
	if p.step != nil {
		p.step.cancel()
	}
}

// check is one declarative check, as a step.
func (b builder) check(c executor.Check, done func(error)) step {
	e := b.recipe.entry
	outcome, _ := b.writers(false)
	return &jobStep{builder: b, pool: probePool, kind: JobProbe, done: done, work: func(ctx context.Context) error {
		err := checkOnce(ctx, e.manager.options.Backend, e.guid, c)
		if err != nil {
			emit(outcome, executor.CutReason(err.Error())) // which has the path of the check, and what the server said
		}
		return err
	}}
}

func checkOnce(ctx context.Context, backend executor.ContainerBackend, guid string, c executor.Check) error {
	if c.TCP != nil {
		conn, err := connect(ctx, backend, guid, c.TCP.Port, c.TCP.ConnectTimeout())
		if err != nil {
			return fmt.Errorf("TCP check of port %d: %w", c.TCP.Port, err)
		}
		return conn.Close()
	}
	path := cmp.Or(c.HTTP.Path, "/")
	if err := get(ctx, backend, guid, c.HTTP.Port, path, c.HTTP.RequestTimeout()); err != nil {
		return fmt.Errorf("HTTP check of port %d%s: %w", c.HTTP.Port, path, err)
	}
	return nil
}

func connect(ctx context.Context, backend executor.ContainerBackend, guid string, port uint16, limit time.Duration) (io.ReadWriteCloser, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return backend.Dial(ctx, guid, port)
}

// get makes one request, bounded as a whole, and wants status 200.
func get(ctx context.Context, backend executor.ContainerBackend, guid string, port uint16, path string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://localhost:%d%s", port, path), nil)
	if err != nil {
		return err
	}
	request.Close = true
	request.Header.Set("User-Agent", "diego-healthcheck")
	conn, err := backend.Dial(ctx, guid, port)
	if err != nil {
		return err
	}
	defer abort(conn)
	// A connection knows no context. The end of the context closes it, and is then
	// the reason for what fails.
	defer context.AfterFunc(ctx, func() { abort(conn) })()
	if err := request.Write(conn); err != nil {
		return cmp.Or(ctx.Err(), err)
	}
	line, err := bufio.NewReader(io.LimitReader(conn, maxStatusLine)).ReadString('\n')
	if err != nil {
		return cmp.Or(ctx.Err(), fmt.Errorf("the answer has no status line: %w", err))
	}
	// A server that is still writing would get a signal for that.
	defer time.AfterFunc(restTime, func() { abort(conn) }).Stop()
	_, _ = io.Copy(io.Discard, io.LimitReader(conn, maxRest))
	response, err := http.ReadResponse(bufio.NewReader(strings.NewReader(line+"\r\n")), request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", response.Status)
	}
	return nil
}

// The status is all that counts of an answer. The rest is read for a while, and not looked
// at.
const (
	maxStatusLine = 4 << 10
	maxRest       = 64 << 10
	restTime      = 100 * time.Millisecond
)

// abort ends a connection without waiting for the other side. What is sent and not taken
// would stay in memory of the kernel that counts for no container, for a minute or more.
func abort(conn io.Closer) {
	if tcp, ok := conn.(interface{ SetLinger(seconds int) error }); ok {
		_ = tcp.SetLinger(0) // else it is closed as usual
	}
	conn.Close()
}
