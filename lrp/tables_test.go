package lrp_test

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
)

// table reads a file of testdata: cells between "|", comments after "#".
func table(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		row := strings.Split(line, "|")
		for i := range row {
			row[i] = strings.TrimSpace(row[i])
		}
		rows = append(rows, row)
	}
	return rows
}

// A life is one index under the default policy.
type life struct {
	t *testing.T
	world
}

func newLife(t *testing.T) *life {
	c, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{Instances: 1}, DefinitionID: "v1", Definition: runnable(),
	}, epoch)
	if err != nil {
		t.Fatal(err)
	}
	return &life{t, world{lrp.Slot{ProcessGUID: "p"}, c.After, epoch}}
}

func (l *life) try(c lrp.Command) (lrp.Decision, error) {
	slot, decision, refused, broken := stepped(l.slot, l.deployment, c, l.now, lrp.Policy{})
	if broken != nil {
		l.t.Fatalf("%#v: %v", c, broken)
	}
	l.slot = slot
	l.deployment = deploymentAfter(l.deployment, decision)
	return decision, refused
}

func (l *life) do(commands ...lrp.Command) {
	for _, c := range commands {
		l.now = l.now.Add(time.Microsecond)
		if _, err := l.try(c); err != nil {
			l.t.Fatalf("%#v: %v", c, err)
		}
	}
}

var alpha, omega = instance("i1"), instance("i2")

// crashTo makes the record CLAIMED or RUNNING by alpha with this count.
func (l *life) crashTo(state string, count int) {
	l.do(lrp.CreateMissing{})
	for n := range count {
		l.do(lrp.Claim{Instance: alpha}, lrp.Crash{Instance: alpha, Reason: "r"})
		if r := l.slot.Records[0]; r.State == lrp.Crashed && n < 200 {
			l.now = l.now.Add(16 * time.Minute)
			l.do(lrp.Restart{DefinitionID: "v1"})
		}
	}
	if state == "CLAIMED" {
		l.do(lrp.Claim{Instance: alpha})
	} else {
		l.do(lrp.Start{Instance: alpha}) // also from CRASHED, which needs no restart
	}
}

func TestCrashesLeadWhereTheSpecificationSays(t *testing.T) {
	for _, row := range table(t, "crashes.txt") {
		t.Run(strings.Join(row, " "), func(t *testing.T) {
			before, _ := strconv.Atoi(row[1])
			wait, _ := time.ParseDuration(row[2])
			l := newLife(t)
			l.crashTo(row[0], before)
			if r := l.slot.Records[0]; r.CrashCount != before || r.State.String() != row[0] {
				t.Fatalf("prepared %v with %d crashes", r.State, r.CrashCount)
			}
			l.now = l.now.Add(wait)
			if _, err := l.try(lrp.Crash{Instance: alpha, Reason: "exit status 1"}); err != nil {
				t.Fatal(err)
			}
			r := l.slot.Records[0]
			if r.State.String() != row[3] || strconv.Itoa(r.CrashCount) != row[4] {
				t.Errorf("got %v with %d crashes", r.State, r.CrashCount)
			}
			if !r.Since.Equal(l.now) || r.CrashReason != "exit status 1" {
				t.Errorf("since %v because %q", r.Since, r.CrashReason)
			}
		})
	}
}

func TestACrashedInstanceWaitsAsLongAsTheSpecificationSays(t *testing.T) {
	for _, row := range table(t, "backoff.txt") {
		t.Run(row[0], func(t *testing.T) {
			count, _ := strconv.Atoi(row[0])
			next := lrp.RestartPolicy{}.Next(count, epoch)
			if row[1] == "never" {
				if !next.Never || next.Due(epoch.Add(1000*time.Hour)) {
					t.Errorf("got %+v", next)
				}
				return
			}
			wait, _ := time.ParseDuration(row[1])
			if next.Never || !next.At.Equal(epoch.Add(wait)) {
				t.Fatalf("got %+v", next)
			}
			if !next.Due(epoch.Add(wait)) || next.Due(epoch.Add(wait-1)) {
				t.Error("it is not due at exactly that time")
			}
		})
	}
}

func TestTheKnobsOfTheRestartPolicyDoWhatTheySay(t *testing.T) {
	for _, c := range []struct {
		name   string
		policy lrp.RestartPolicy
		count  int
		atOnce bool
		wait   time.Duration // -1 for never
	}{
		{"no immediate restarts", lrp.RestartPolicy{ImmediateRestarts: -1}, 0, false, 30 * time.Second},
		{"one immediate restart", lrp.RestartPolicy{ImmediateRestarts: 1}, 1, false, 30 * time.Second},
		{"a first wait", lrp.RestartPolicy{MinBackoff: time.Second}, 5, false, 4 * time.Second},
		{"a longest wait", lrp.RestartPolicy{MaxBackoff: time.Minute}, 5, false, time.Minute},
		{"a first wait above the longest", lrp.RestartPolicy{MinBackoff: time.Hour}, 3, false, 16 * time.Minute},
		{"a limit", lrp.RestartPolicy{MaxRestarts: 5}, 6, false, -1},
		{"at the limit", lrp.RestartPolicy{MaxRestarts: 5}, 5, false, 2 * time.Minute},
		{"no limit", lrp.RestartPolicy{MaxRestarts: -1}, 1 << 40, false, 16 * time.Minute},
		{"waits that no Duration holds", lrp.RestartPolicy{MaxRestarts: -1, MaxBackoff: 1<<63 - 1}, 67, false, 1<<63 - 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.policy.AtOnce(c.count); got != c.atOnce {
				t.Errorf("at once: %v", got)
			}
			next := c.policy.Next(c.count, epoch)
			if next.Never != (c.wait < 0) || !next.Never && next.At.Sub(epoch) != c.wait {
				t.Errorf("got %+v", next)
			}
		})
	}
	running := lrp.ActualLRP{State: lrp.Running, RunningSince: epoch, CrashCount: 7}
	if n := (lrp.RestartPolicy{ResetAfter: time.Second}).Count(&running, epoch.Add(time.Second)); n != 0 {
		t.Errorf("reset after a second: %d", n)
	}
}

func TestEachCommandIsLegalWhereTheSpecificationSays(t *testing.T) {
	columns := []string{"none", "UNCLAIMED", "CLAIMED α", "CLAIMED ω", "RUNNING α", "RUNNING ω", "CRASHED"}
	reach := map[string][]lrp.Command{
		"none":      nil,
		"UNCLAIMED": {lrp.CreateMissing{}},
		"CLAIMED α": {lrp.CreateMissing{}, lrp.Claim{Instance: alpha}},
		"CLAIMED ω": {lrp.CreateMissing{}, lrp.Claim{Instance: omega}},
		"RUNNING α": {lrp.CreateMissing{}, lrp.Start{Instance: alpha}},
		"RUNNING ω": {lrp.CreateMissing{}, lrp.Start{Instance: omega}},
	}
	crash := []lrp.Command{lrp.Claim{Instance: omega}, lrp.Crash{Instance: omega, Reason: "r"}}
	reach["CRASHED"] = []lrp.Command{lrp.CreateMissing{}}
	for range 4 {
		reach["CRASHED"] = append(reach["CRASHED"], crash...)
	}
	commands := map[string]lrp.Command{
		"Claim": lrp.Claim{Instance: alpha}, "Start": lrp.Start{Instance: alpha}, "Crash": lrp.Crash{Instance: alpha, Reason: "r"},
		"Remove": lrp.Remove{Instance: alpha}, "EvacuateClaimed": lrp.EvacuateClaimed{Instance: alpha},
		"EvacuateStopped": lrp.EvacuateStopped{Instance: alpha}, "EvacuateCrashed": lrp.EvacuateCrashed{Instance: alpha, Reason: "r"},
		"RemoveEvacuating": lrp.RemoveEvacuating{Instance: alpha},
		"Fail":             lrp.Fail{Error: lrp.PlacementError{Reason: lrp.NoCompatibleCells}},
		"Retire":           lrp.Retire{}, "Retire missing α": lrp.Retire{MissingCell: alpha.CellID},
		"CreateMissing": lrp.CreateMissing{}, "Restart": lrp.Restart{DefinitionID: "v1"}, "StopExtra": lrp.StopExtra{},
		"Recover": lrp.Recover{CellID: alpha.CellID}, "RemoveSuspect": lrp.RemoveSuspect{}, "Prune": lrp.Prune{},
	}
	for _, row := range table(t, "transitions.txt") {
		for i, column := range columns {
			want := row[i+1]
			t.Run(row[0]+"/"+column, func(t *testing.T) {
				l := newLife(t)
				l.do(reach[column]...)
				l.now = l.now.Add(time.Minute)
				state := func() string {
					if len(l.slot.Records) == 0 {
						return "none"
					}
					r := l.slot.Records[0]
					s := r.State.String()
					switch r.InstanceKey {
					case alpha:
						s += " α"
					case omega:
						s += " ω"
					}
					if !r.PlacementError.IsZero() {
						s += "+ε"
					}
					return s
				}
				if got := state(); got != column {
					t.Fatalf("prepared %s", got)
				}
				decision, err := l.try(commands[row[0]])
				switch {
				case want == "x":
					if err == nil {
						t.Errorf("it is not refused; the record is %s", state())
					}
				case err != nil:
					t.Error(err)
				case want == "=":
					if slices.ContainsFunc(decision.Writes, func(w lrp.Write) bool { return !onlyStops(w) }) {
						t.Errorf("it writes; the record is %s", state())
					}
				case state() != want:
					t.Errorf("got %s, want %s", state(), want)
				}
			})
		}
	}
}

// onlyStops reports whether a write only notes that the instance is to stop.
func onlyStops(w lrp.Write) bool {
	if w.Before == nil || w.After == nil || w.After.Stopping.IsZero() {
		return false
	}
	marked := *w.Before
	marked.Stopping, marked.ModificationTag = w.After.Stopping, w.After.ModificationTag
	return marked.Equal(w.After)
}

func TestAnEvacuatingRecordExpiresExactlyAtItsTime(t *testing.T) {
	for _, c := range []struct {
		timeout, cell, want time.Duration
	}{
		{0, 0, 10 * time.Minute}, // 000 §Harmonizing During Evacuation: the evacuation timeout
		{time.Hour, 0, time.Hour},
		{0, time.Minute, time.Minute}, // the cell gives itself less
		{0, time.Hour, 10 * time.Minute},
		{time.Second, time.Minute, time.Second},
		{0, -time.Second, 10 * time.Minute},
	} {
		l := newLife(t)
		l.do(lrp.CreateMissing{}, lrp.Start{Instance: alpha})
		decision, err := lrp.Step(l.slot, l.deployment, lrp.EvacuateRunning{Instance: alpha, TTL: c.cell}, l.now, lrp.Policy{EvacuationTimeout: c.timeout})
		if err != nil {
			t.Fatal(err)
		}
		l.slot = l.slot.Apply(decision)
		evacuated := l.now
		for after, left := range map[time.Duration]int{c.want - 1: 2, c.want: 1} {
			pruned, err := lrp.Step(l.slot, l.deployment, lrp.Prune{}, evacuated.Add(after), lrp.Policy{})
			if err != nil {
				t.Fatal(err)
			}
			if n := len(l.slot.Apply(pruned).Records); n != left {
				t.Errorf("%v after the evacuation there are %d records, want %d", after, n, left)
			}
		}
	}
}

// A cell that evacuates for longer than the bound and goes on asking keeps its
// record, with few writes.
func TestAnEvacuatingRecordLivesAsLongAsItsCellEvacuates(t *testing.T) {
	const deadline = 25 * time.Second
	l, policy := newLife(t), lrp.Policy{EvacuationTimeout: 6 * time.Second}
	l.do(lrp.CreateMissing{}, lrp.Start{Instance: alpha})
	began, writes := l.now, 0
	for at := time.Duration(0); at < deadline; at += 500 * time.Millisecond {
		for _, c := range []lrp.Command{lrp.EvacuateRunning{Instance: alpha, TTL: deadline - at}, lrp.Prune{}} {
			decision, err := lrp.Step(l.slot, l.deployment, c, began.Add(at), policy)
			if err != nil {
				t.Fatal(err)
			}
			l.slot = l.slot.Apply(decision)
			writes += len(decision.Writes)
		}
		if n := len(l.slot.Records); n != 2 {
			t.Fatalf("%v after the evacuation began there are %d records", at, n)
		}
	}
	if writes > 12 {
		t.Errorf("that took %d writes", writes)
	}
	if decision, _ := lrp.Step(l.slot, l.deployment, lrp.Prune{}, began.Add(deadline), policy); len(l.slot.Apply(decision).Records) != 1 {
		t.Error("the record outlives the evacuation of its cell")
	}
}

func TestARolloutGivesUpAnIndexExactlyAtItsTime(t *testing.T) {
	d := valid()
	d.Definitions = definitions(2)
	d.ActiveDefinitionID, d.HealthyDefinitionID = "v2", "v2"
	decision, err := lrp.Step(lrp.Slot{ProcessGUID: "p"}, &d, lrp.CreateMissing{}, epoch, lrp.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	s := lrp.Slot{ProcessGUID: "p"}.Apply(decision)
	for _, c := range []struct {
		policy  lrp.Policy
		after   time.Duration
		stalled int
	}{
		{lrp.Policy{}, 10*time.Minute - 1, 0},
		{lrp.Policy{}, 10 * time.Minute, 1},
		{lrp.Policy{RolloutGiveUp: time.Second}, time.Second, 1},
	} {
		rollout := lrp.NewRollout(&d, epoch.Add(c.after), c.policy)
		rollout.Visit(s)
		if status := rollout.Status(); status.Stalled != c.stalled || status.Complete() {
			t.Errorf("after %v: %+v", c.after, status)
		}
		if next := rollout.Next(); c.stalled == 0 && !next.Equal(epoch.Add(10*time.Minute)) || c.stalled == 1 && !next.IsZero() {
			t.Errorf("after %v: the next look is at %v", c.after, next)
		}
	}
}

func TestDeltaComparesSetsOfIndices(t *testing.T) {
	for _, c := range []struct {
		instances      int
		have           string
		missing, extra string
	}{
		{0, "", "", ""},
		{3, "", "0 1 2", ""},
		{3, "0 1 2", "", ""},
		{3, "2 0", "1", ""},
		{2, "0 1 2 3", "", "2 3"},
		{0, "0", "", "0"},
		{2, "1 2", "0", "2"}, // as many as wanted, and yet a hole
		{3, "5 1 1 5", "0 2", "5"},
		{1, "-1", "0", "-1"},
		{-1, "0", "", "0"},
	} {
		t.Run(c.have, func(t *testing.T) {
			missing, extra := lrp.Delta(c.instances, numbers(c.have))
			if join(missing) != c.missing || join(extra) != c.extra {
				t.Errorf("missing %v, extra %v", missing, extra)
			}
		})
	}
}

func numbers(s string) (out []int) {
	for _, f := range strings.Fields(s) {
		n, _ := strconv.Atoi(f)
		out = append(out, n)
	}
	return out
}

func join(n []int) string {
	var parts []string
	for _, i := range n {
		parts = append(parts, strconv.Itoa(i))
	}
	return strings.Join(parts, " ")
}

func TestADomainIsFreshUntilItsTimeHasPassed(t *testing.T) {
	for _, c := range []struct {
		name  string
		ttl   time.Duration
		after time.Duration
		fresh bool
	}{
		{"at once", time.Minute, 0, true},
		{"just before", time.Minute, time.Minute - 1, true},
		{"at its end", time.Minute, time.Minute, false},
		{"with the longest TTL", math.MaxInt64, 1e6 * time.Hour, true},
		{"without a TTL for ever", 0, 1e6 * time.Hour, true},
		{"with a negative TTL never", -1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			domain := lrp.NewDomain("apps", c.ttl, epoch)
			data, err := json.Marshal(domain)
			if err != nil {
				t.Fatal(err)
			}
			var kept lrp.Domain
			if err := json.Unmarshal(data, &kept); err != nil {
				t.Fatal(err)
			}
			for _, d := range []lrp.Domain{domain, kept} {
				if got := d.Fresh(epoch.Add(c.after)); got != c.fresh {
					t.Errorf("%+v: fresh: %v", d, got)
				}
			}
		})
	}
}

func TestADomainHasAName(t *testing.T) {
	for name, valid := range map[string]bool{"apps": true, "": false, strings.Repeat("d", 255): true, strings.Repeat("d", 256): false} {
		if err := lrp.NewDomain(name, 0, epoch).Validate(); (err == nil) != valid {
			t.Errorf("%d bytes: %v", len(name), err)
		}
	}
}

func TestAnUnclaimedRecordGoesStale(t *testing.T) {
	r := lrp.ActualLRP{State: lrp.Unclaimed, Since: epoch}
	for _, c := range []struct {
		name   string
		policy lrp.Policy
		state  lrp.State
		after  time.Duration
		want   bool
	}{
		{"just before 30 s", lrp.Policy{}, lrp.Unclaimed, 30*time.Second - 1, false},
		{"after 30 s", lrp.Policy{}, lrp.Unclaimed, 30 * time.Second, true},
		{"after a time of one's own", lrp.Policy{StaleUnclaimed: time.Second}, lrp.Unclaimed, time.Second, true},
		{"not in another state", lrp.Policy{}, lrp.Claimed, time.Hour, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			r.State = c.state
			at, ever := c.policy.StaleFrom(&r)
			if got := ever && !epoch.Add(c.after).Before(at); got != c.want {
				t.Errorf("stale: %v", got)
			}
		})
	}
}
