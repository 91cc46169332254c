package executor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
)

var states = []executor.State{executor.Reserved, executor.Initializing, executor.Created, executor.Running, executor.Completed}

func TestTheLegalTransitionsAreThoseOfTheSpecification(t *testing.T) {
	text, err := os.ReadFile("testdata/transitions.txt")
	if err != nil {
		t.Fatal(err)
	}
	legal := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		from, to, _ := strings.Cut(strings.TrimSpace(line), " -> ")
		for next := range strings.SplitSeq(to, " | ") {
			legal[from+" "+next] = true
		}
	}
	count := 0
	for from := executor.State(0); from < 9; from++ {
		for to := executor.State(0); to < 9; to++ {
			if got := executor.CanTransition(from, to); got != legal[fmt.Sprint(from, " ", to)] {
				t.Errorf("%v to %v: %v", from, to, got)
			} else if got {
				count++
			}
		}
	}
	if count != len(legal) || count != len(executor.Transitions()) || count != 6 {
		t.Errorf("%d transitions, want %d, %d", count, len(legal), len(executor.Transitions()))
	}
	for _, transition := range executor.Transitions() {
		if !executor.CanTransition(transition.From, transition.To) {
			t.Errorf("%v is listed and not legal", transition)
		}
	}
	executor.Transitions()[0].To = executor.Completed
	if executor.CanTransition(executor.Reserved, executor.Completed) {
		t.Error("a caller has changed the table")
	}
}

func TestStatesSurviveTheirText(t *testing.T) {
	names := []string{"RESERVED", "INITIALIZING", "CREATED", "RUNNING", "COMPLETED"}
	for i, state := range states {
		text, err := state.MarshalText()
		if err != nil || string(text) != names[i] || state.String() != names[i] {
			t.Errorf("%v: %s, %v", state, text, err)
		}
		var back executor.State
		if err := back.UnmarshalText(text); err != nil || back != state {
			t.Errorf("%s: %v, %v", text, back, err)
		}
	}
}

func TestAnUnknownStateIsAnError(t *testing.T) {
	for _, state := range []executor.State{0, 6, 255} {
		if text, err := state.MarshalText(); !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("%v: %s, %v", state, text, err)
		}
	}
	if got := executor.State(6).String(); got != "State(6)" {
		t.Error(got)
	}
	for _, text := range []string{"", "running", "PAUSED", "State(6)"} {
		state := executor.Created
		err := state.UnmarshalText([]byte(text))
		if state != executor.Created || len(lines(err)) != 1 || !strings.HasSuffix(lines(err)[0], "want a known state") {
			t.Errorf("%q: %v, %v", text, state, err)
		}
	}
}

// in is a container that has come to a state in the usual way.
func in(t *testing.T, state executor.State) executor.Container {
	t.Helper()
	c, err := executor.Reserve("instance-1", executor.Resources{MemoryMB: 64, DiskMB: 128, MaxPIDs: 10},
		map[string]string{executor.TagLifecycle: executor.LifecycleLRP, executor.TagDomain: "cf"}, at(0))
	step := func(next executor.Container, stepErr error) {
		if err == nil {
			c, err = next, stepErr
		}
	}
	if state >= executor.Initializing {
		step(c.Initialize(executor.RunInfo{RootFS: "host:", Action: run("/bin/app")}, map[string]string{executor.TagProcessIndex: "3"}, at(1)))
	}
	if state >= executor.Created {
		step(c.Create(executor.Addresses{ExternalIP: "10.0.0.1", InternalIP: "fd00::2", Ports: []executor.PortMapping{{ContainerPort: 8080, HostPort: 61000}}}, at(2)))
	}
	if state >= executor.Running {
		step(c.Run(at(3)))
	}
	if state >= executor.Completed {
		step(c.Complete(executor.Failed("exit status 1"), at(4)))
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAContainerIsValidInEveryState(t *testing.T) {
	for i, state := range states {
		c := in(t, state)
		mustBeValid(t, c)
		if c.State != state || !c.Since.Equal(at(i)) || !c.AllocatedAt.Equal(at(0)) {
			t.Errorf("%v: %+v", state, c)
		}
	}
}

func TestEveryContainerSurvivesItsJSON(t *testing.T) {
	for _, state := range states {
		golden(t, "container-"+strings.ToLower(state.String())+".json", in(t, state))
	}
	expired, _ := in(t, executor.Reserved).Expire(0, at(60))
	golden(t, "container-expired.json", expired)
}

// methods are the ways to change a container's state.
var methods = []struct {
	to   executor.State
	call func(executor.Container, time.Time) (executor.Container, error)
}{
	{executor.Initializing, func(c executor.Container, now time.Time) (executor.Container, error) {
		return c.Initialize(fullRunInfo(), map[string]string{executor.TagDomain: "other"}, now)
	}},
	{executor.Created, func(c executor.Container, now time.Time) (executor.Container, error) {
		return c.Create(executor.Addresses{ExternalIP: "10.0.0.9"}, now)
	}},
	{executor.Running, executor.Container.Run},
	{executor.Completed, func(c executor.Container, now time.Time) (executor.Container, error) {
		return c.Complete(executor.Stopped(), now)
	}},
}

func TestMethodsFollowTheTable(t *testing.T) {
	for _, from := range states {
		for _, method := range methods {
			t.Run(fmt.Sprintf("%v to %v", from, method.to), func(t *testing.T) {
				before := in(t, from)
				after, err := method.call(before, at(9))
				if diff := cmp.Diff(in(t, from), before); diff != "" {
					t.Errorf("the receiver has changed:\n%s", diff)
				}
				if executor.CanTransition(from, method.to) {
					if err != nil || after.State != method.to || !after.Since.Equal(at(9)) {
						t.Errorf("%+v, %v", after, err)
					}
					mustBeValid(t, after)
					return
				}
				var illegal *executor.TransitionError
				if !errors.As(err, &illegal) || !errors.Is(err, executor.ErrTransition) {
					t.Fatal(err)
				}
				want := &executor.TransitionError{GUID: "instance-1", Transition: executor.Transition{From: from, To: method.to}}
				if diff := cmp.Diff(want, illegal); diff != "" {
					t.Error(diff)
				}
				text := fmt.Sprintf(`illegal change of container state: container "instance-1": %v to %v`, from, method.to)
				if err.Error() != text {
					t.Error(err)
				}
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("an error has changed the container:\n%s", diff)
				}
			})
		}
	}
}

func TestAnyWalkKeepsAContainerValid(t *testing.T) {
	seed := time.Now().UnixNano()
	random := rand.New(rand.NewSource(seed))
	for range 200 {
		c := in(t, executor.Reserved)
		for i := range 20 {
			before := c
			switch n := random.Intn(len(methods) + 2); n {
			case len(methods):
				c, _ = c.Expire(time.Duration(random.Intn(30))*time.Second, at(i))
			case len(methods) + 1:
				c, _ = c.SetRoutable(random.Intn(2) == 0)
			default:
				c, _ = methods[n].call(c, at(i))
			}
			if got := found(c); got != nil {
				t.Fatalf("seed %d: %q", seed, got)
			}
			expired := before.State == executor.Reserved && c.RunResult.Expired
			if c.State != before.State && !expired && !executor.CanTransition(before.State, c.State) {
				t.Fatalf("seed %d: %v to %v", seed, before.State, c.State)
			}
		}
	}
}

func TestInitializeMergesTagsAndSharesNone(t *testing.T) {
	reserved := in(t, executor.Reserved)
	c, err := reserved.Initialize(fullRunInfo(), map[string]string{executor.TagDomain: "other", "x": "y"}, at(1))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{executor.TagLifecycle: executor.LifecycleLRP, executor.TagDomain: "other", "x": "y"}
	if diff := cmp.Diff(want, c.Tags); diff != "" {
		t.Error(diff)
	}
	if reserved.Tags[executor.TagDomain] != "cf" {
		t.Error("the reservation's tags have changed")
	}
	c, err = reserved.Initialize(fullRunInfo(), nil, at(1))
	if err != nil || c.Tags[executor.TagDomain] != "cf" {
		t.Error(c.Tags, err)
	}
}

func TestBadArgumentsLeaveAContainerAsItWas(t *testing.T) {
	for _, test := range []struct {
		name string
		from executor.State
		call func(executor.Container) (executor.Container, error)
		want []string
	}{
		{"a RunInfo out of its limits", executor.Reserved, func(c executor.Container) (executor.Container, error) {
			return c.Initialize(executor.RunInfo{Action: run("/a")}, nil, at(1))
		}, []string{"run_info.root_fs: want a URL with a scheme"}},
		{"addresses that are none", executor.Initializing, func(c executor.Container) (executor.Container, error) {
			return c.Create(executor.Addresses{ExternalIP: "cell", InternalIP: "10", Ports: []executor.PortMapping{{}}}, at(2))
		}, []string{"external_ip: cell: want an IP address", "internal_ip: 10: want an IP address",
			"ports[0].container_port: 0: want 1 to 65535", "ports[0].host_port: 0: want 1 to 65535"}},
		{"too many ports", executor.Initializing, func(c executor.Container) (executor.Container, error) {
			return c.Create(executor.Addresses{Ports: make([]executor.PortMapping, 10001)}, at(2))
		}, []string{"ports: 10001: want at most 10000 elements"}},
		{"a result that contradicts itself", executor.Running, func(c executor.Container) (executor.Container, error) {
			return c.Complete(executor.RunResult{Stopped: true, Failed: true, FailureReason: "x"}, at(4))
		}, []string{"run_result.stopped: true: want not with failed"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			before := in(t, test.from)
			after, err := test.call(before)
			if diff := cmp.Diff(test.want, lines(err)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, after); diff != "" {
				t.Error(diff)
			}
		})
	}
	c, err := executor.Reserve("", executor.Resources{MemoryMB: -1}, nil, time.Time{})
	want := []string{"guid: want 1 to 255 letters, digits, - and _", "resources.memory_mb: -1: want at least 0",
		"allocated_at: 0001-01-01 00:00:00 +0000 UTC: want a time", "since: 0001-01-01 00:00:00 +0000 UTC: want a time"}
	if diff := cmp.Diff(want, lines(err)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(executor.Container{}, c); diff != "" {
		t.Error(diff)
	}
}

func TestAContainerThatNoMethodMakesIsRefused(t *testing.T) {
	info := executor.RunInfo{RootFS: "host:", Action: run("/a")}
	const runInfo = "run_info: want none in a reservation, used or expired, and one in any other container"
	for _, test := range []struct {
		name string
		in   executor.State
		edit func(*executor.Container)
		want []string
	}{
		{"an unknown state", executor.Running, func(c *executor.Container) { c.State, c.Routable = 9, false }, []string{"state: State(9): want a known state"}},
		{"a reservation with work", executor.Reserved, func(c *executor.Container) { c.RunInfo = &info }, []string{runInfo}},
		{"a running container without work", executor.Running, func(c *executor.Container) { c.RunInfo = nil }, []string{runInfo}},
		{"a completed container without work", executor.Completed, func(c *executor.Container) { c.RunInfo = nil }, []string{runInfo}},
		{"an expired container with work", executor.Completed, func(c *executor.Container) { c.RunResult = executor.Expired() }, []string{runInfo}},
		{"traffic before it runs", executor.Created, func(c *executor.Container) { c.Routable = true }, []string{"routable: true: want false unless RUNNING"}},
		{"addresses before it is made", executor.Initializing, func(c *executor.Container) { c.ExternalIP = "10.0.0.1" },
			[]string{"external_ip: 10.0.0.1: want no addresses before CREATED"}},
		{"ports before it is made", executor.Reserved, func(c *executor.Container) { c.Ports = []executor.PortMapping{{ContainerPort: 1, HostPort: 1}} },
			[]string{"external_ip: want no addresses before CREATED"}},
		{"an internal address before it is made", executor.Reserved, func(c *executor.Container) { c.InternalIP = "10.0.0.1" },
			[]string{"external_ip: want no addresses before CREATED"}},
		{"a result before it ends", executor.Running, func(c *executor.Container) { c.RunResult = executor.Stopped() },
			[]string{"run_result: want a result only when COMPLETED"}},
		{"too many tags", executor.Reserved, func(c *executor.Container) {
			c.Tags = map[string]string{}
			for i := range executor.MaxListLength + 1 {
				c.Tags[fmt.Sprint(i)] = ""
			}
		}, []string{"tags: 10001: want at most 10000 elements"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := in(t, test.in)
			test.edit(&c)
			if diff := cmp.Diff(test.want, found(c)); diff != "" {
				t.Error(diff)
			}
		})
	}
	broken := in(t, executor.Created)
	broken.RunInfo = nil
	if _, err := broken.Run(at(3)); !errors.Is(err, executor.ErrInvalid) {
		t.Error(err)
	}
}

func TestAContainerIsRoutableAtOnceUnlessItHasReadinessChecks(t *testing.T) {
	if c := in(t, executor.Running); !c.Routable {
		t.Error("not routable without readiness checks")
	}
	c, _ := in(t, executor.Reserved).Initialize(fullRunInfo(), nil, at(1))
	c, _ = c.Create(executor.Addresses{}, at(2))
	c, err := c.Run(at(3))
	if err != nil || c.Routable {
		t.Fatal(c.Routable, err)
	}
	ready, changed := c.SetRoutable(true)
	if !changed || !ready.Routable || c.Routable || !ready.Since.Equal(at(3)) {
		t.Errorf("%+v", ready)
	}
	if again, changed := ready.SetRoutable(true); changed || !again.Routable {
		t.Error("it changed twice")
	}
	done, err := ready.Complete(executor.Succeeded(), at(5))
	if err != nil || done.Routable {
		t.Errorf("%+v, %v", done, err)
	}
}

func TestOnlyARunningContainerBecomesRoutable(t *testing.T) {
	for _, state := range states {
		if _, changed := func() (executor.Container, bool) {
			c := in(t, state)
			c.Routable = false
			return c.SetRoutable(true)
		}(); changed != (state == executor.Running) {
			t.Errorf("%v: %v", state, changed)
		}
	}
}

func TestOnlyAReservationExpiresAndOnlyInTime(t *testing.T) {
	for _, state := range states {
		for _, test := range []struct {
			after   time.Duration
			now     int
			expired bool
		}{
			{0, 59, false}, {0, 60, true}, {executor.DefaultReservationExpiry, 60, true}, {-1, 59, false}, {time.Second, 0, false}, {time.Second, 1, true},
		} {
			before := in(t, state)
			after, expired := before.Expire(test.after, at(test.now))
			if expired != (test.expired && state == executor.Reserved) {
				t.Errorf("%v after %v at %d s: %v", state, test.after, test.now, expired)
			}
			mustBeValid(t, after)
			if !expired {
				if diff := cmp.Diff(before, after); diff != "" {
					t.Error(diff)
				}
				continue
			}
			if after.State != executor.Completed || after.RunResult != executor.Expired() || !after.Since.Equal(at(test.now)) || before.State != executor.Reserved {
				t.Errorf("%+v", after)
			}
		}
	}
}

func TestTimesAreKeptInUTC(t *testing.T) {
	zone := time.FixedZone("east", 3600)
	c, err := executor.Reserve("a", executor.Resources{}, nil, at(0).In(zone))
	if err != nil || c.AllocatedAt.Location() != time.UTC || c.Since.Location() != time.UTC {
		t.Error(c, err)
	}
	if c, _ := c.Expire(0, at(99).In(zone)); c.Since.Location() != time.UTC {
		t.Error(c)
	}
	if c, _ := c.Initialize(fullRunInfo(), nil, at(1).In(zone)); c.Since.Location() != time.UTC {
		t.Error(c)
	}
}

func TestEveryResultIsWhatItSays(t *testing.T) {
	for _, test := range []struct {
		name      string
		got, want executor.RunResult
	}{
		{"success", executor.Succeeded(), executor.RunResult{}},
		{"failure", executor.Failed("x"), executor.RunResult{Failed: true, FailureReason: "x"}},
		{"failure without reason", executor.Failed(""), executor.RunResult{Failed: true, FailureReason: "failed without saying why"}},
		{"stop", executor.Stopped(), executor.RunResult{Stopped: true}},
		{"failure before the work", executor.NeverBegan("x"), executor.RunResult{Failed: true, FailureReason: "x", Retryable: true}},
		{"expiry", executor.Expired(),
			executor.RunResult{Failed: true, FailureReason: "the reservation expired unused", Retryable: true, Expired: true}},
		{"failure with a long reason", executor.Failed(strings.Repeat("x", 2000)),
			executor.RunResult{Failed: true, FailureReason: executor.CutReason(strings.Repeat("x", 2000))}},
		{"failure with bytes as reason", executor.NeverBegan("\xff"), executor.RunResult{Failed: true, FailureReason: "\uFFFD", Retryable: true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			mustBeValid(t, test.got)
			if diff := cmp.Diff(test.want, test.got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The space of results is small: each combination is either one that a
// constructor makes or is refused.
func TestOnlyTheResultsOfConstructorsAreValid(t *testing.T) {
	possible := map[executor.RunResult]bool{
		executor.Succeeded(): true, executor.Stopped(): true, executor.Failed("x"): true, executor.NeverBegan("x"): true,
		{Failed: true, FailureReason: "x", Retryable: true, Expired: true}: true,
	}
	bits := func(n, bit int) bool { return n>>bit&1 == 1 }
	for n := range 32 {
		r := executor.RunResult{Failed: bits(n, 0), Stopped: bits(n, 1), Retryable: bits(n, 2), Expired: bits(n, 3)}
		if bits(n, 4) {
			r.FailureReason = "x"
		}
		if got := found(r); (got == nil) != possible[r] {
			t.Errorf("%+v: %q", r, got)
		}
	}
	if got := found(executor.RunResult{Failed: true, FailureReason: strings.Repeat("x", executor.MaxReasonBytes+1)}); len(got) != 1 {
		t.Error(got)
	}
}

func TestExactlyThreeStatesAreTold(t *testing.T) {
	told := map[executor.State]executor.EventKind{
		executor.Reserved: executor.ContainerReserved, executor.Running: executor.ContainerRunning, executor.Completed: executor.ContainerCompleted,
	}
	for _, state := range states {
		c := in(t, state)
		e, ok := c.Event()
		if kind, want := told[state]; ok != want || e.Kind != kind {
			t.Errorf("%v: %v, %v", state, e.Kind, ok)
		}
		if !ok {
			continue
		}
		mustBeValid(t, e)
		golden(t, "event-"+strings.ToLower(state.String())+".json", e)
	}
}

func TestAnEventOfAnotherKindThanItsContainerIsRefused(t *testing.T) {
	for _, state := range states {
		e := executor.Event{Kind: executor.ContainerRunning, Container: in(t, state)}
		if got := found(e); (got == nil) != (state == executor.Running) {
			t.Errorf("%v: %q", state, got)
		}
	}
	e, _ := in(t, executor.Running).Event()
	e.Container.GUID = ""
	if diff := cmp.Diff([]string{"container.guid: want 1 to 255 letters, digits, - and _"}, found(e)); diff != "" {
		t.Error(diff)
	}
}

func TestAnUnknownKindOfEventIsAnError(t *testing.T) {
	for _, kind := range []executor.EventKind{0, 4} {
		if _, err := kind.MarshalText(); !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("%v: %v", kind, err)
		}
	}
	if got := executor.EventKind(4).String(); got != "EventKind(4)" {
		t.Error(got)
	}
	var e executor.Event
	err := json.Unmarshal([]byte(`{"kind":"container_paused"}`), &e)
	if diff := cmp.Diff([]string{"kind: container_paused: want a known kind"}, lines(err)); diff != "" {
		t.Error(diff)
	}
}
