package rep

import (
	"cmp"
	"errors"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
)

// A SelfTest makes and runs a container from time to time, in the way all work
// is run (000 §Detecting Cell Failures). A cell whose last tests all failed
// tells the auctioneer that it is unhealthy and refuses work; the work that it
// has stays. The first test that succeeds makes it healthy again.
type SelfTest struct {
	// RunInfo is what the test runs. It succeeds if its Action ends well. Its
	// root file system is one that the cell can make; ports make it a test of
	// the network too.
	RunInfo executor.RunInfo
	// Resources are what the container takes (default 64 MiB of memory and 64 MB
	// of disk). While the cell has not that much left it is not tested.
	Resources executor.Resources
	// Interval is between two tests after one that succeeded (default 2 min),
	// RetryInterval after one that failed (default 10 s).
	Interval, RetryInterval time.Duration
	// Timeout is how long a test may take (default 1 min).
	Timeout time.Duration
	// Failures is how many failures in a row make the cell unhealthy (default
	// 3).
	Failures int
}

func (t SelfTest) withDefaults(v *executor.Validator) SelfTest {
	t.RunInfo.Validate(v.In("run_info"))
	if r := t.Resources; r.MemoryMB == 0 && r.DiskMB == 0 && r.MaxPIDs == 0 && r.Extra.IsZero() {
		t.Resources = executor.Resources{MemoryMB: 64, DiskMB: 64}
	}
	t.Interval = cmp.Or(t.Interval, 2*time.Minute)
	t.RetryInterval = cmp.Or(t.RetryInterval, 10*time.Second)
	t.Timeout = cmp.Or(t.Timeout, time.Minute)
	t.Failures = cmp.Or(t.Failures, 3)
	v.Check(t.Interval > 0, "interval", t.Interval, "not negative")
	v.Check(t.RetryInterval > 0, "retry_interval", t.RetryInterval, "not negative")
	v.Check(t.Timeout > 0, "timeout", t.Timeout, "not negative")
	v.Check(t.Failures > 0, "failures", t.Failures, "not negative")
	return t
}

// selfTestState is how far the self-test is. It is guarded by the Rep's lock.
type selfTestState struct {
	guid      string // of the test's container, or of the last one
	running   bool
	next      time.Time // when the test begins, or has taken too long
	failures  int       // in a row
	unhealthy bool
}

// due is when there is something to do, or false if nothing ever is.
func (t *selfTestState) due(test *SelfTest, evacuating bool) (time.Time, bool) {
	return t.next, test != nil && (t.running || !evacuating)
}

// selfTest begins, judges and ends tests when it is time.
func (r *Rep) selfTest() {
	r.mu.Lock()
	defer r.mu.Unlock()
	test, t, now := r.o.SelfTest, &r.test, r.o.Now()
	if test == nil {
		return
	}
	if t.running {
		c, there := r.o.Executor.Get(t.guid)
		switch {
		case r.drain.begun():
			r.o.Executor.Delete(t.guid)
			t.running = false
		case !there:
			r.judge(errors.New("its container has vanished"))
		case c.State == executor.Completed && c.RunResult == executor.Succeeded():
			r.judge(nil)
		case c.State == executor.Completed:
			r.judge(errors.New(cmp.Or(c.RunResult.FailureReason, "its container was stopped")))
		case !now.Before(t.next):
			r.judge(errors.New("it took too long"))
		}
		return
	}
	if r.drain.begun() || now.Before(t.next) {
		return
	}
	if _, there := r.o.Executor.Get(t.guid); there {
		r.judge(errors.New("the container of the last test could not be removed"))
		return
	}
	t.guid = r.o.NewGUID()
	refusals := r.o.Executor.Reserve(executor.Reservation{
		GUID: t.guid, Resources: test.Resources, Tags: map[string]string{executor.TagLifecycle: executor.LifecycleSelfTest},
	})
	switch {
	case len(refusals) == 0:
	case errors.Is(refusals[0].Err, executor.ErrCapacity):
		t.next = now.Add(test.Interval) // a full cell gets no work anyway
		return
	default:
		r.judge(refusals[0].Err)
		return
	}
	if err := r.o.Executor.Initialize(t.guid, executor.Work{RunInfo: test.RunInfo}); err != nil {
		r.judge(err)
		return
	}
	t.running, t.next = true, now.Add(test.Timeout)
}

// judge notes the outcome of a test and removes its container. It is called
// with the lock.
func (r *Rep) judge(err error) {
	test, t := r.o.SelfTest, &r.test
	r.o.Executor.Delete(t.guid)
	t.running = false
	was := t.unhealthy
	outcome := "succeeded"
	if err == nil {
		t.failures, t.unhealthy = 0, false
		t.next = r.o.Now().Add(test.Interval)
	} else {
		outcome = "failed"
		t.failures++
		t.unhealthy = t.failures >= test.Failures
		t.next = r.o.Now().Add(test.RetryInterval)
		r.o.Logger.Warn("the self-test of the cell failed", "failures", t.failures, "err", err)
	}
	r.o.Metrics.Count("rep_self_tests_total", 1, auction.Label{Name: "outcome", Value: outcome})
	if t.unhealthy != was {
		r.o.Logger.Warn("the health of the cell has changed", "unhealthy", t.unhealthy)
	}
	unhealthy := 0.0
	if t.unhealthy {
		unhealthy = 1
	}
	r.o.Metrics.Gauge("rep_unhealthy", unhealthy)
}
