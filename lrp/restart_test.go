package lrp_test

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// A process may have a policy of its own, and never restarts more often than
// its control plane allows.
func TestAProcessRestartsByItsOwnPolicyWithinThatOfTheControlPlane(t *testing.T) {
	bound := lrp.RestartPolicy{ImmediateRestarts: 2, MaxRestarts: 10, MinBackoff: time.Second, MaxBackoff: time.Minute, ResetAfter: time.Minute}
	for _, c := range []struct {
		name   string
		own    *lrp.RestartPolicy
		want   lrp.RestartPolicy
		denied string // fields that the control plane does not allow
	}{
		{"no policy", nil, bound, ""},
		{"an empty policy", &lrp.RestartPolicy{}, bound, ""},
		{"never at once", &lrp.RestartPolicy{ImmediateRestarts: -1}, with(bound, func(p *lrp.RestartPolicy) { p.ImmediateRestarts = -1 }), ""},
		{"fewer restarts", &lrp.RestartPolicy{MaxRestarts: 1}, with(bound, func(p *lrp.RestartPolicy) { p.MaxRestarts = 1 }), ""},
		{"more restarts", &lrp.RestartPolicy{MaxRestarts: 11}, bound, "max_restarts"},
		{"restarts for ever", &lrp.RestartPolicy{MaxRestarts: -1}, bound, "max_restarts"},
		{"more at once", &lrp.RestartPolicy{ImmediateRestarts: 3}, bound, "immediate_restarts"},
		{"shorter waits", &lrp.RestartPolicy{MinBackoff: 1, MaxBackoff: 2, ResetAfter: 3}, bound, "min_backoff_nanoseconds max_backoff_nanoseconds reset_after_nanoseconds"},
		{"longer waits", &lrp.RestartPolicy{MinBackoff: 2 * time.Second, MaxBackoff: time.Hour, ResetAfter: time.Hour},
			lrp.RestartPolicy{ImmediateRestarts: 2, MaxRestarts: 10, MinBackoff: 2 * time.Second, MaxBackoff: time.Hour, ResetAfter: time.Hour}, ""},
		{"a first wait above the control plane's longest", &lrp.RestartPolicy{MinBackoff: time.Hour},
			with(bound, func(p *lrp.RestartPolicy) { p.MinBackoff, p.MaxBackoff = time.Hour, time.Hour }), ""},
	} {
		if got := c.own.Within(bound); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
		var v executor.Validator
		c.own.CheckWithin(&v, bound)
		var denied []string
		for _, field := range strings.Fields("immediate_restarts max_restarts min_backoff_nanoseconds max_backoff_nanoseconds reset_after_nanoseconds") {
			if err := v.Err(); err != nil && strings.Contains(err.Error(), field) {
				denied = append(denied, field)
			}
		}
		if got := strings.Join(denied, " "); got != c.denied {
			t.Errorf("%s: denied %q, want %q: %v", c.name, got, c.denied, v.Err())
		}
	}
}

// The default of the first wait gives way to a shorter longest wait. Then it is not
// a bound either.
func TestTheShortestWaitOfTheControlPlaneIsNotAboveItsLongest(t *testing.T) {
	bound := lrp.RestartPolicy{MaxBackoff: 10 * time.Second}
	own := &lrp.RestartPolicy{ImmediateRestarts: 1, MinBackoff: 20 * time.Second}
	var v executor.Validator
	if own.CheckWithin(&v, bound); v.Err() != nil {
		t.Errorf("a longer wait is refused: %v", v.Err())
	}
	for _, c := range []struct {
		own  lrp.RestartPolicy
		want time.Duration
	}{{lrp.RestartPolicy{ImmediateRestarts: 1}, 10 * time.Second}, {*own, 20 * time.Second}} {
		if at := c.own.Within(bound).Next(4, epoch).At; !at.Equal(epoch.Add(c.want)) {
			t.Errorf("%+v waits for %v, want %v", c.own, at.Sub(epoch), c.want)
		}
	}
}

// An operator who becomes stricter does not keep consumers from updating what they
// have, with all its settings.
func TestAnUpdateMayRepeatAPolicyThatTheControlPlaneWouldNotAllowNow(t *testing.T) {
	now := lrp.Policy{Restart: lrp.RestartPolicy{MaxRestarts: 5}}
	d := lrp.Deployment{Settings: lrp.Settings{Policies: lrp.Policies{Restart: &lrp.RestartPolicy{MaxRestarts: 10}}}}
	for most, allowed := range map[int]bool{10: true, 9: false, 5: true} {
		next := d
		next.Restart = &lrp.RestartPolicy{MaxRestarts: most}
		if err := now.Allows(lrp.Change{Before: &d, After: &next}); (err == nil) != allowed {
			t.Errorf("%d restarts in place of 10, where 5 are allowed: %v", most, err)
		}
	}
}

func with(p lrp.RestartPolicy, change func(*lrp.RestartPolicy)) lrp.RestartPolicy {
	change(&p)
	return p
}

func TestNoPolicyOfAProcessMakesRestartsMoreFrequent(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	random := func() lrp.RestartPolicy {
		p := lrp.RestartPolicy{ImmediateRestarts: r.IntN(6) - 1, MaxRestarts: r.IntN(8) - 1, ResetAfter: time.Duration(r.IntN(3)) * time.Minute}
		p.MinBackoff = time.Duration(r.IntN(3)) * time.Minute
		p.MaxBackoff = p.MinBackoff * time.Duration(r.IntN(3))
		return p
	}
	never := 0
	for range 20_000 {
		own, bound := random(), random()
		p := own.Within(bound)
		count := r.IntN(10)
		running := lrp.ActualLRP{State: lrp.Running, CrashCount: count, RunningSince: epoch}
		since := epoch.Add(time.Duration(r.IntN(400)) * time.Second)
		switch {
		case p.AtOnce(count) && !bound.AtOnce(count):
			t.Fatalf("%+v within %+v restarts at once at %d", own, bound, count)
		case bound.Next(count, epoch).Never && !p.Next(count, epoch).Never:
			t.Fatalf("%+v within %+v never gives up at %d", own, bound, count)
		case p.Next(count, epoch).Never:
			never++
		case p.Next(count, epoch).At.Before(bound.Next(count, epoch).At):
			t.Fatalf("%+v within %+v restarts early at %d", own, bound, count)
		case p.Count(&running, since) < bound.Count(&running, since):
			t.Fatalf("%+v within %+v forgets crashes early", own, bound)
		}
	}
	if never == 0 {
		t.Error("no policy gave up")
	}
}

// A decision uses the policy of the deployment that it is given.
func TestACrashIsDecidedByThePolicyOfItsProcess(t *testing.T) {
	change, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: runnable(),
		Settings: lrp.Settings{Instances: 1, Policies: lrp.Policies{Restart: &lrp.RestartPolicy{ImmediateRestarts: -1}}},
	}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	instance := lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}
	slot := lrp.Slot{ProcessGUID: "web"}
	for _, c := range []lrp.Command{lrp.Start{Instance: instance}, lrp.Crash{Instance: instance}} {
		decision, err := lrp.Step(slot, change.After, c, epoch, lrp.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		slot = slot.Apply(decision)
	}
	if len(slot.Records) != 1 || slot.Records[0].State != lrp.Crashed {
		t.Errorf("%+v, want one that waits after its first crash", slot.Records)
	}
}
