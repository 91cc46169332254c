package storagetest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// Crash says how [RunCrash] opens a store on disk and how often it crashes. It is
// for one goroutine at a time.
type Crash struct {
	// Open opens the store in a directory: the first time a new one, later
	// what was left. It is called in this process and in those that are
	// killed, and never in two at once. The log must keep 1,000,000 events.
	Open func(dir string) (storage.Store, error)
	// Rounds is how often a process is killed (default 20).
	Rounds int
	// Seed decides when.
	Seed uint64
	// Writers is how many goroutines commit at once (default 4).
	Writers int

	dir string
}

// crashDir is the environment variable that tells a child process that it is
// one, and where the store is.
const crashDir = "DIEGO_STORAGETEST_CRASH_DIR"

// RunCrash kills a process that commits, again and again, and looks at what it
// has left: every commit that was acknowledged is there, nothing is there by
// half, and the events tell what the records are.
//
// The process is this test binary, started again with only the calling test to
// run. So RunCrash is the first thing that a top-level test does, and in the
// child it does not return.
func RunCrash(t *testing.T, c Crash) {
	c.Rounds, c.Writers = orDefault(c.Rounds, 20), orDefault(c.Writers, 4)
	if dir := os.Getenv(crashDir); dir != "" {
		c.child(dir)
	}
	if strings.Contains(t.Name(), "/") {
		t.Fatal("RunCrash is called by a top-level test only")
	}
	t.Logf("seed %d, %d rounds", c.Seed, c.Rounds)
	c.dir = t.TempDir()
	rng := rand.New(rand.NewPCG(c.Seed, 0))
	fold := newFold()
	total := 0
	for round := range c.Rounds {
		// From none at all to about a thousand commits.
		acknowledged, err := c.kill(t, 1<<rng.IntN(11)-1)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		if err := c.check(fold, acknowledged); err != nil {
			t.Fatalf("round %d, after %d acknowledged commits and a kill: %v", round, total+len(acknowledged), err)
		}
		total += len(acknowledged)
	}
	if total == 0 {
		t.Error("no commit was acknowledged in any round")
	}
	t.Logf("%d commits were acknowledged, and all were there", total)
}

func orDefault(n, def int) int {
	if n <= 0 {
		return def
	}
	return n
}

// An ack is a commit that the child says has succeeded.
type ack struct {
	cursor storage.Cursor
	// mark is the detail of the cause of the event at cursor.
	mark string
}

// kill starts a child, kills it after it has acknowledged n commits, and
// returns all that it has acknowledged until then.
func (c *Crash) kill(t *testing.T, n int) ([]ack, error) {
	// The child ends by itself when its standard input does, so it never
	// outlives this process.
	child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
	child.Env = append(os.Environ(), crashDir+"="+c.dir)
	child.Stderr = os.Stderr
	stdin, err := child.StdinPipe()
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	stdout, err := child.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := child.Start(); err != nil {
		return nil, err
	}
	var acks []ack
	lines := bufio.NewReader(stdout)
	ready, killed := false, false
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // a line that was cut off is not an acknowledgement
		}
		switch kind, rest, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " "); kind {
		case "ready":
			ready = true
		case "committed":
			number, mark, _ := strings.Cut(rest, " ")
			cursor, err := strconv.ParseInt(number, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("the child says %q", line)
			}
			acks = append(acks, ack{storage.Cursor(cursor), mark})
		case "error":
			child.Process.Kill()
			child.Wait()
			return nil, errors.New("the child fails: " + rest)
		}
		if ready && !killed && len(acks) >= n {
			killed = true
			if err := child.Process.Kill(); err != nil {
				return nil, err
			}
		}
	}
	err = child.Wait()
	if !killed {
		return nil, fmt.Errorf("the child ended before it was killed: %v", err)
	}
	return acks, nil
}

// check opens what was left.
func (c *Crash) check(fold *fold, acks []ack) (err error) {
	s, err := c.Open(c.dir)
	if err != nil {
		return fmt.Errorf("opening what was left: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	ctx := context.Background()
	marks := map[storage.Cursor]string{}
	for e, err := range s.Events(ctx, fold.at, storage.EventFilter{}) {
		if err != nil {
			return err
		}
		if e.LRP != nil {
			marks[e.Sequence] = e.LRP.Cause.Detail
		}
	}
	for _, a := range acks {
		if marks[a.cursor] != a.mark {
			return fmt.Errorf("commit %q was acknowledged as event %d, which is now %q", a.mark, a.cursor, marks[a.cursor])
		}
	}
	if err := s.View(ctx, func(r storage.Reader) error { return fold.compare(ctx, r) }); err != nil {
		return err
	}
	// It must go on from there.
	_, err = s.Commit(ctx, storage.Batch{Domains: []storage.DomainWrite{{Name: "after the crash"}}})
	return err
}

// child commits and acknowledges until it is killed.
func (c *Crash) child(dir string) {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(os.Stdout, format+"\n", args...)
	}
	s, err := c.Open(dir)
	if err != nil {
		say("error open: %v", err)
		os.Exit(1)
	}
	say("ready")
	for writer := range c.Writers {
		go func() {
			err := c.write(s, writer, say) // only an error ends it
			say("error writer %d: %v", writer, err)
			os.Exit(1)
		}()
	}
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// write runs instances of one process through their lives: desired, claimed,
// running, crashed, gone. Each commit writes several records and events.
func (c *Crash) write(s storage.Store, writer int, say func(string, ...any)) error {
	ctx := context.Background()
	guid := fmt.Sprint("writer-", writer)
	start := time.Now().UTC().Round(0)
	var step atomic.Int64
	for n := 0; ; n++ {
		index := n % 5
		mark := fmt.Sprintf("%s-%d-%d", guid, start.UnixNano(), n)
		cursor, err := storage.Apply(ctx, s, patient, func(ctx context.Context, r storage.Reader) (b storage.Batch, err error) {
			slot, _, err := r.Slot(ctx, guid, index)
			if err != nil {
				return b, err
			}
			now := start.Add(time.Duration(step.Add(1)))
			d := deployment(guid)
			instance := lrp.InstanceKey{InstanceGUID: fmt.Sprint(guid, index), CellID: "cell"}
			var command lrp.Command = lrp.CreateMissing{}
			d.Instances = 5
			if len(slot.Records) > 0 {
				switch slot.Records[0].State {
				case lrp.Unclaimed:
					command = lrp.Claim{Instance: instance}
				case lrp.Claimed:
					command = lrp.Start{Instance: instance, NetInfo: lrp.NetInfo{Address: "10.0.0.1"}}
				case lrp.Running:
					command = lrp.Crash{Instance: instance, Reason: mark}
				case lrp.Crashed:
					d, command = nil, lrp.StopExtra{}
				}
			}
			decision, err := lrp.Step(slot, d, command, now, lrp.Policy{Restart: lrp.RestartPolicy{ImmediateRestarts: 1}})
			if err != nil {
				return b, err
			}
			b.ActualLRPs = decision.Writes
			for i := range decision.Events {
				if e := &decision.Events[i]; e.Kind <= lrp.InstanceCrashed {
					e.Cause.Detail = mark
					b.Events = append(b.Events, storage.Event{LRP: e})
				}
			}
			b.Domains = []storage.DomainWrite{{Name: guid}}
			return b, nil
		})
		if err != nil {
			return err
		}
		say("committed %d %s", cursor, mark)
	}
}
