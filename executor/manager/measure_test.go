package manager_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
)

// A metered backend says that containers use what the test wants. It has one
// container, since several are measured at the same time.
type metered struct {
	*scripted.Backend
	usage func(guid string) (executor.Usage, error)
	asked []string
}

func (b *metered) Usage(_ context.Context, guid string) (executor.Usage, error) {
	b.asked = append(b.asked, guid)
	return b.usage(guid)
}

func newMeteredCell(t *testing.T) (*cell, *metered) {
	t.Helper()
	b := &metered{}
	c := newCell(t, func(o *manager.Options) {
		b.Backend = o.Backend.(*scripted.Backend)
		o.Backend, o.UsageInterval = b, 15*time.Second
	})
	return c, b
}

func TestRunningContainersAreMeasuredSoonAndThenAtIntervals(t *testing.T) {
	c, b := newMeteredCell(t)
	used := executor.Usage{MemoryBytes: 5 << 20, DiskBytes: executor.Unknown, PIDs: 3, SentBytes: executor.Unknown}
	b.usage = func(string) (executor.Usage, error) { return used, nil }
	c.launch("web-0", work(do("wait forever")))
	c.reserve("reserved")
	if got := c.Measurements(); len(got) != 0 {
		t.Errorf("at the start: %+v", got)
	}
	// The first rates are averages since the container was created.
	used.CPU, used.ReceivedBytes = 1500*time.Millisecond, 600
	c.advance(3 * time.Second)
	got := c.Measurements()
	if len(got) != 1 {
		t.Fatalf("soon after the start measured were %+v", got)
	}
	want := manager.Measurement{GUID: "web-0", Resources: executor.Resources{MemoryMB: 100, DiskMB: 100}, At: epoch.Add(3 * time.Second), Usage: used,
		Cores: 0.5, ReceivedPerSecond: 200, SentPerSecond: executor.Unknown}
	if !equalMeasurements(got[0], want) {
		t.Errorf("measured was\n%+v, want\n%+v", got[0], want)
	}
	used.CPU, used.ReceivedBytes = 4500*time.Millisecond, 1800
	c.advance(12 * time.Second)
	if got := c.Measurements()[0]; got.Cores != 0.25 || got.ReceivedPerSecond != 100 || got.SentPerSecond != executor.Unknown {
		t.Errorf("the rates are %v, %v and %v", got.Cores, got.ReceivedPerSecond, got.SentPerSecond)
	}
	used.CPU = 0 // the backend has lost count
	c.advance(15 * time.Second)
	if got := c.Measurements()[0]; got.Cores != executor.Unknown {
		t.Errorf("processor time that falls is a rate of %v", got.Cores)
	}
	if !slices.Equal(b.asked, []string{"web-0", "web-0", "web-0"}) {
		t.Errorf("measured were %q", b.asked)
	}
	c.stop("web-0")
	c.advance(15 * time.Second)
	if got := c.Measurements(); len(got) != 0 {
		t.Errorf("after the end: %+v", got)
	}
}

// Each is alone in its cell: containers of one cell are measured at the same time,
// and all of them would take what the clock moves on for one.
func TestAContainerThatIsSlowToMeasureIsMeasuredMoreRarely(t *testing.T) {
	for name, x := range map[string]struct {
		takes       time.Duration
		err         error
		least, most int
	}{
		"quick": {0, nil, 41, 41},
		"slow":  {time.Second, errors.New("it has many files"), 2, 3},
	} {
		t.Run(name, func(t *testing.T) {
			c, b := newMeteredCell(t)
			b.usage = func(string) (executor.Usage, error) {
				c.now = c.now.Add(x.takes)
				return executor.Usage{}, x.err
			}
			c.launch(name, work(do("wait forever")))
			c.advance(10 * time.Minute)
			if n := len(b.asked); n < x.least || n > x.most {
				t.Errorf("in ten minutes it was measured %d times", n)
			}
			if got := c.Measurements(); (len(got) == 0) != (x.err != nil) {
				t.Errorf("measured were %+v", got)
			}
		})
	}
}

func equalMeasurements(a, b manager.Measurement) bool {
	a.Owner, b.Owner = manager.LogOwner{}, manager.LogOwner{}
	return a.GUID == b.GUID && a.Resources.MemoryMB == b.Resources.MemoryMB && a.At.Equal(b.At) && a.Usage == b.Usage &&
		a.Cores == b.Cores && a.ReceivedPerSecond == b.ReceivedPerSecond && a.SentPerSecond == b.SentPerSecond
}
