//go:build unix

package stdio_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/stdio"
)

func TestDrainBringsAllOutputOfAProcessThoughAChildHoldsItOpen(t *testing.T) {
	for how, open := range openers(t) {
		t.Run(how, func(t *testing.T) {
			var out bytes.Buffer
			p, err := open(&out, new(stdio.Pace))
			if err != nil {
				t.Fatal(err)
			}
			// The grandchild keeps stdout for longer than any test runs.
			cmd := exec.Command("sh", "-c", "sleep 1000 & echo $! >&2; head -c 300000 /dev/zero | tr '\\0' x")
			cmd.Stdout = p.Child
			var pid strings.Builder
			stderr, err := open(&pid, new(stdio.Pace))
			if err != nil {
				t.Fatal(err)
			}
			cmd.Stderr = stderr.Child
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			p.Started()
			stderr.Started()
			if err := cmd.Wait(); err != nil {
				t.Fatal(err)
			}
			p.Drain()
			stderr.Drain()
			p.Close()
			stderr.Close()
			if out.Len() != 300000 {
				t.Errorf("%d bytes arrived, want 300000", out.Len())
			}
			if err := exec.Command("kill", "-9", strings.TrimSpace(pid.String())).Run(); err != nil {
				t.Errorf("killing the grandchild %q: %v", pid.String(), err)
			}
		})
	}
}

func TestAFileIsHandedToTheProcessItself(t *testing.T) {
	for how, open := range openers(t) {
		t.Run(how, func(t *testing.T) {
			f, err := os.CreateTemp(t.TempDir(), "")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			p, err := open(f, new(stdio.Pace))
			if err != nil {
				t.Fatal(err)
			}
			p.Started()
			p.Drain()
			p.Close()
			if p.Child != f {
				t.Error("the child got another file")
			}
			if _, err := f.WriteString("still open"); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestNoWriterIsTheNullDevice(t *testing.T) {
	for how, open := range openers(t) {
		t.Run(how, func(t *testing.T) {
			p, err := open(nil, new(stdio.Pace))
			if err != nil {
				t.Fatal(err)
			}
			if p.Child.Name() != os.DevNull {
				t.Errorf("the output goes to %s", p.Child.Name())
			}
			p.Started()
			p.Close()
		})
	}
}

// uncomparable is a writer that cannot be compared with another.
type uncomparable []io.Writer

func (u uncomparable) Write(p []byte) (int, error) { return u[0].Write(p) }

func TestBothOutputsShareAPipeIfTheyGoToOneWriter(t *testing.T) {
	for how, open := range openers(t) {
		t.Run(how, func(t *testing.T) {
			one, other := &bytes.Buffer{}, &bytes.Buffer{}
			for name, test := range map[string]struct {
				stdout, stderr io.Writer
				shared         bool
				want           [2]string // in one and other
			}{
				"one writer":      {one, one, true, [2]string{"1\n2\n3\n"}},
				"two writers":     {one, other, false, [2]string{"1\n3\n", "2\n"}},
				"no comparison":   {uncomparable{one}, uncomparable{other}, false, [2]string{"1\n3\n", "2\n"}},
				"none":            {nil, nil, true, [2]string{}},
				"only the second": {nil, other, false, [2]string{"", "2\n"}},
			} {
				t.Run(name, func(t *testing.T) {
					one.Reset()
					other.Reset()
					stdout, stderr, err := stdio.Both(test.stdout, test.stderr, func(w io.Writer) (*stdio.Pipe, error) { return open(w, new(stdio.Pace)) })
					if err != nil {
						t.Fatal(err)
					}
					cmd := exec.Command("sh", "-c", "echo 1; echo 2 >&2; echo 3")
					cmd.Stdout, cmd.Stderr = stdout.Child, stderr.Child
					if err := cmd.Run(); err != nil {
						t.Fatal(err)
					}
					for _, p := range []*stdio.Pipe{stdout, stderr} {
						p.Started()
					}
					for _, p := range []*stdio.Pipe{stdout, stderr} {
						p.Drain()
						p.Close()
					}
					if (stdout == stderr) != test.shared {
						t.Errorf("they share a pipe: %v", stdout == stderr)
					}
					if got := [2]string{one.String(), other.String()}; test.want != got {
						t.Errorf("the writers got %q, want %q", got, test.want)
					}
				})
			}
		})
	}
}

type counter struct{ reads, bytes int }

func (c *counter) Write(p []byte) (int, error) {
	c.reads++
	c.bytes += len(p)
	return len(p), nil
}

// The time only bounds the reads: on a busy machine there are fewer.
func TestAFloodIsReadAtABoundedRateAndNothingOfItIsLost(t *testing.T) {
	for how, open := range openers(t) {
		t.Run(how, func(t *testing.T) {
			const gap = 3 * time.Millisecond
			for name, test := range map[string]struct {
				script string
				bytes  int
			}{
				"large writes": {"head -c 8000000 /dev/zero", 8_000_000},
				"small writes": {"i=0; while [ $i -lt 20000 ]; do echo x; i=$((i+1)); done", 40_000},
			} {
				t.Run(name, func(t *testing.T) {
					var out counter
					began := time.Now()
					p, err := open(&out, new(stdio.Pace))
					if err != nil {
						t.Fatal(err)
					}
					cmd := exec.Command("sh", "-c", test.script)
					cmd.Stdout = p.Child
					if err := cmd.Start(); err != nil {
						t.Fatal(err)
					}
					p.Started()
					if err := cmd.Wait(); err != nil {
						t.Fatal(err)
					}
					for !p.Done() {
						time.Sleep(gap) // between two looks
					}
					took := time.Since(began)
					p.Close()
					p.Close()
					if most := int(took/gap) + 2; out.reads > most || out.bytes != test.bytes {
						t.Errorf("%d bytes in %d reads and %v, want %d in at most %d", out.bytes, out.reads, took, test.bytes, most)
					}
				})
			}
		})
	}
}

// Many processes cost no more reads than one.
func TestTheFloodsOfAContainerAreReadAtABoundedRateTogether(t *testing.T) {
	for how, open := range openers(t) {
		t.Run(how, func(t *testing.T) {
			const gap, floods, each = 3 * time.Millisecond, 20, 300_000
			var pace stdio.Pace
			var outs [floods]counter
			var pipes [floods]*stdio.Pipe
			began := time.Now()
			for i := range floods {
				p, err := open(&outs[i], &pace)
				if err != nil {
					t.Fatal(err)
				}
				pipes[i] = p
				cmd := exec.Command("head", "-c", fmt.Sprint(each), "/dev/zero")
				cmd.Stdout = p.Child
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				p.Started()
				defer cmd.Wait()
			}
			for _, p := range pipes {
				for !p.Done() {
					time.Sleep(gap) // between two looks
				}
			}
			took := time.Since(began)
			reads := 0
			for i := range floods {
				pipes[i].Close()
				reads += outs[i].reads
				if outs[i].bytes != each {
					t.Errorf("%d bytes came of flood %d, want %d", outs[i].bytes, i, each)
				}
			}
			if most := int(took/gap) + 2*floods; reads > most {
				t.Errorf("%d floods took %d reads in %v, want at most %d", floods, reads, took, most)
			}
		})
	}
}

func TestAContainerHasPlacesForWhatRunsAndForWhatBegins(t *testing.T) {
	var mu sync.Mutex
	beginning := 0
	ended := map[int]bool{}
	processes := map[int]struct{}{}
	begin := func() (func(), error) {
		return stdio.Begin(&mu, "c", processes, func(p int) bool { return ended[p] }, &beginning)
	}
	var begun func()
	for p := range stdio.MaxProcesses {
		var err error
		if begun, err = begin(); err != nil {
			t.Fatalf("process %d: %v", p, err)
		}
		if p < stdio.MaxProcesses-1 { // the last one begins for a while
			processes[p] = struct{}{}
			begun()
		}
	}
	full := func(why string) {
		t.Helper()
		if _, err := begin(); !errors.Is(err, executor.ErrProcesses) {
			t.Errorf("one more while %s: %v", why, err)
		}
	}
	full("one begins")
	begun()
	if begun, err := begin(); err != nil {
		t.Errorf("once that has failed to start: %v", err)
	} else {
		processes[-1] = struct{}{}
		begun()
	}
	full("all run")
	ended[7] = true
	if _, err := begin(); err != nil || len(processes) != stdio.MaxProcesses-1 {
		t.Errorf("once one has ended: %v, and %d are left", err, len(processes))
	}
}
