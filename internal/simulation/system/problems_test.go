package system_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	quickrand "math/rand"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// allSentinels are the errors that errors.Is is asked for.
var allSentinels = []error{
	lrp.ErrCannotBeClaimed, lrp.ErrCannotBeStarted, lrp.ErrCannotBeCrashed, lrp.ErrCannotBeFailed, lrp.ErrCannotBeRemoved,
	lrp.ErrCannotBeRetired, lrp.ErrNotFound, lrp.ErrRefused, lrp.ErrInvariant,
	task.ErrNotFound, task.ErrExists, task.ErrInvalidTransition, task.ErrRunningElsewhere, task.ErrOtherAttempt, task.ErrInvariant,
	storage.ErrNotFound, storage.ErrExists, storage.ErrConflict, storage.ErrDuplicate, storage.ErrHeld, storage.ErrFenced,
	storage.ErrCorrupt, storage.ErrGone, executor.ErrInvalid, bbs.ErrNotLeader, httpapi.ErrForbidden,
	context.DeadlineExceeded, context.Canceled,
}

// travelled is what arrives of an error.
func travelled(t *testing.T, err error) error {
	t.Helper()
	body, bad := httpapi.ProblemBody(err)
	if bad != nil {
		t.Fatal(bad)
	}
	return httpapi.ProblemError(body)
}

// sameAnswers compares what errors.Is says of two errors.
func sameAnswers(t *testing.T, got, want error) {
	t.Helper()
	for _, sentinel := range allSentinels {
		if errors.Is(got, sentinel) != errors.Is(want, sentinel) {
			t.Errorf("errors.Is(%q, %q) is %t, want %t", got, sentinel, errors.Is(got, sentinel), errors.Is(want, sentinel))
		}
	}
	if got.Error() != want.Error() {
		t.Errorf("got text %q, want %q", got, want)
	}
}

func TestErrorsArriveAsTheyWere(t *testing.T) {
	for _, k := range httpapi.ProblemKinds() {
		t.Run(strings.TrimPrefix(k.Type, "urn:diego:problem:"), func(t *testing.T) {
			got := travelled(t, k.Example)
			sameAnswers(t, got, k.Example)
			// errors.As finds the same value, of any type.
			if kind := reflect.TypeOf(k.Example); kind.Kind() == reflect.Pointer && kind.Elem().PkgPath() != "errors" {
				into := reflect.New(kind)
				if !errors.As(got, into.Interface()) {
					t.Fatalf("got %T, want %v", got, kind)
				}
				if diff := cmp.Diff(fmt.Sprintf("%+v", k.Example), fmt.Sprintf("%+v", into.Elem().Interface())); diff != "" {
					t.Error(diff)
				}
			}
			wrapped := fmt.Errorf("doing something to it: %w", k.Example)
			sameAnswers(t, travelled(t, wrapped), wrapped)
		})
	}
}

func TestEveryErrorOfARefusedCommandArrives(t *testing.T) {
	for _, sentinel := range allSentinels[:6] {
		for _, absent := range []bool{false, true} {
			want := &lrp.TransitionError{ProcessGUID: "web", Index: 3, Command: "Claim", Err: sentinel, Why: "because", Absent: absent}
			got := travelled(t, want)
			sameAnswers(t, got, want)
			var as *lrp.TransitionError
			if !errors.As(got, &as) || *as != *want {
				t.Errorf("got %+v, want %+v", as, want)
			}
		}
	}
	for _, sentinel := range allSentinels[9:14] {
		for state := task.Absent; state <= task.Resolving; state++ {
			want := &task.TransitionError{GUID: "job", State: state, Command: "Start", Err: sentinel, Why: "because"}
			got := travelled(t, want)
			sameAnswers(t, got, want)
			var as *task.TransitionError
			if !errors.As(got, &as) || *as != *want {
				t.Errorf("got %+v, want %+v", as, want)
			}
		}
	}
	for _, sentinel := range []error{storage.ErrExists, storage.ErrNotFound, storage.ErrConflict} {
		want := &storage.ConflictError{Key: storage.TaskKey("job"), Err: sentinel}
		sameAnswers(t, travelled(t, want), want)
	}
}

func TestAnErrorOfNoKnownKindIsAClearError(t *testing.T) {
	for name, err := range map[string]error{
		"unknown here":       travelled(t, errors.New("the disk is full")),
		"of a newer version": httpapi.ProblemError([]byte(`{"type":"urn:diego:problem:too_hot","title":"too hot","status":418,"detail":"wait an hour","request_id":"4711"}`)),
		"of another form":    httpapi.ProblemError([]byte(`{"type":"urn:diego:problem:gone","title":"gone","status":410,"detail":"after 3","error":"?"}`)),
		"of another reason":  httpapi.ProblemError([]byte(`{"type":"urn:diego:problem:conflict","title":"conflict","status":409,"detail":"no","error":{"reason":"?"}}`)),
		"of somebody else":   httpapi.ProblemError([]byte(`{"type":"about:blank","title":"Bad Gateway","status":502}`)),
	} {
		var remote *problem.RemoteError
		if !errors.As(err, &remote) || remote.Problem.Status == 0 || !strings.Contains(err.Error(), fmt.Sprint(remote.Problem.Status)) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if err := httpapi.ProblemError([]byte("<html>")); !errors.Is(err, httpapi.ErrGarbled) {
		t.Errorf("got %v, want ErrGarbled", err)
	}
}

func FuzzProblemError(f *testing.F) {
	for _, k := range httpapi.ProblemKinds() {
		body, err := httpapi.ProblemBody(k.Example)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		err := httpapi.ProblemError(body)
		if err == nil {
			t.Fatal("no error")
		}
		again, bad := httpapi.ProblemBody(err)
		if bad != nil {
			t.Fatalf("%v cannot go on: %v", err, bad)
		}
		if next := httpapi.ProblemError(again); errors.Is(err, storage.ErrGone) != errors.Is(next, storage.ErrGone) {
			t.Errorf("%v became %v", err, next)
		}
	})
}

// fillAtRandom sets v to a random value. A selector is made from text only.
func fillAtRandom(t *testing.T, v reflect.Value, random *quickrand.Rand) {
	t.Helper()
	if field := v.FieldByName("Selector"); field.IsValid() {
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "Selector" {
				setAtRandom(t, v.Field(i), random)
			}
		}
		texts := []string{"", "team=blog", "team!=blog,!tier,owner"}
		field.Set(reflect.ValueOf(selectorOf(t, texts[random.Intn(len(texts))])))
		return
	}
	setAtRandom(t, v, random)
}

func setAtRandom(t *testing.T, v reflect.Value, random *quickrand.Rand) {
	t.Helper()
	made, ok := quick.Value(v.Type(), random)
	if !ok {
		t.Fatalf("no values of %v can be made", v.Type())
	}
	v.Set(made)
}

// What travels in calls comes back as it was.
func TestWhatIsSentIsWhatArrives(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, test := range []func() any{
		func() any { return new(lrp.Claim) }, func() any { return new(lrp.Start) }, func() any { return new(lrp.Crash) },
		func() any { return new(lrp.Remove) }, func() any { return new(lrp.EvacuateClaimed) }, func() any { return new(lrp.EvacuateRunning) },
		func() any { return new(lrp.EvacuateStopped) }, func() any { return new(lrp.EvacuateCrashed) },
		func() any { return new(lrp.RemoveEvacuating) }, func() any { return new(lrp.Retire) }, func() any { return new(lrp.RolloutStatus) },
		func() any { return new(task.Start) }, func() any { return new(task.Complete) }, func() any { return new(task.Reject) }, func() any { return new(task.Fail) },
		func() any { return new(storage.DeploymentFilter) }, func() any { return new(storage.EventFilter) },
		func() any { return new(storage.Extent) }, func() any { return new(storage.Fence) }, func() any { return new(storage.DomainEvent) },
		func() any { return new(auction.Capacity) }, func() any { return new(auction.Score) },
		func() any { return new(bbs.CellPresence) }, func() any { return new(rep.LogRequest) }, func() any { return new(rep.LogChunk) },
		func() any { return new(httpapi.ForbiddenError) },
	} {
		kind := reflect.TypeOf(test()).Elem()
		t.Run(kind.String(), func(t *testing.T) {
			random := newQuickRand(seed)
			for range 100 {
				sent := reflect.New(kind).Elem()
				fillAtRandom(t, sent, random)
				if n := sent.FieldByName("NetInfo"); n.IsValid() { // has one of a few values
					preferred := n.FieldByName("PreferredAddress")
					preferred.SetUint(preferred.Uint() % uint64(lrp.PreferHost+1))
				}
				if w := sent.FieldByName("WaitsFor"); w.IsValid() { // too
					w.SetUint(w.Uint() % uint64(lrp.WaitResumed+1))
				}
				if u := sent.FieldByName("Unplaced"); u.IsValid() { // too
					reason := u.FieldByName("PlacementError").FieldByName("Reason")
					reason.SetUint(1 + reason.Uint()%uint64(lrp.RejectedByCell))
				}
				want := sent.Interface()
				text, err := json.Marshal(want)
				if err != nil {
					t.Fatal(err)
				}
				got := reflect.New(kind)
				if err := json.Unmarshal(text, got.Interface()); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
				if diff := cmp.Diff(want, got.Elem().Interface(), emptyIsNil); diff != "" {
					t.Fatalf("%s (-sent +arrived)", diff)
				}
				if strings.ContainsAny(keysOf(text), "ABCDEFGHIJKLMNOPQRSTUVWXYZ") {
					t.Fatalf("a member is not in snake case: %s", text)
				}
			}
		})
	}
}

// keysOf are the names of the members of an object.
func keysOf(text []byte) string {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(text, &members) // the text is not always an object
	names := ""
	for name := range members {
		names += name + " "
	}
	return names
}

func TestEventsAndPlansArriveAsTheyWere(t *testing.T) {
	s := newSystem(t, 1, nil)
	s.must(s.BBS.Desire(s.ctx, desired("web", 2)))
	s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "")))
	s.must(s.BBS.UpsertDomain(s.ctx, "apps", time.Minute))
	s.step()
	s.must(s.BBS.DeleteDeployment(s.ctx, "web"))
	s.step()
	log, err := s.BBS.Log(s.ctx)
	s.must(err)
	client := overHTTP(t, s.ControlPlane)
	want := take(t, s.ControlPlane.BBS, bbs.FromStart, storage.EventFilter{}, int(log.Newest))
	got := take(t, client, bbs.FromStart, storage.EventFilter{}, int(log.Newest))
	records := cmp.Comparer(func(a, b *lrp.ActualLRP) bool { return a == b || a != nil && b != nil && a.Equal(b) })
	if diff := cmp.Diff(want, got, emptyIsNil, records); diff != "" {
		t.Errorf("events (-there +arrived)\n%s", diff)
	}
}
