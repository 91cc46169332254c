package rep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// A taker takes reports, or fails with an error.
type taker struct {
	BBS
	err   error
	calls []string // the request id and the reports of each
}

func (b *taker) ReportSessions(ctx context.Context, cellID string, list []storage.SessionEvent) error {
	call := cellID + " " + storage.RequestID(ctx) + ":"
	for i := range list {
		call += " " + list[i].ID + " " + list[i].EventKind()
	}
	b.calls = append(b.calls, call)
	return b.err
}

// take returns the calls since the last time.
func (b *taker) take() string {
	text := strings.Join(b.calls, "; ")
	b.calls = nil
	return text
}

// working is a rep with the container of web/0.
func working(b BBS) (r *Rep, pass func(time.Duration)) {
	now, n := time.Unix(1_700_000_000, 0).UTC(), 0
	r = &Rep{o: Options{
		CellID: "cell-1", Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), CallTimeout: time.Minute, RetryInterval: 5 * time.Second,
		Executor: one{c: executor.Container{GUID: "c", Tags: map[string]string{
			executor.TagLifecycle: executor.LifecycleLRP, executor.TagProcessGUID: "web", executor.TagProcessIndex: "0", executor.TagDomain: "apps",
		}}},
		Now:     func() time.Time { return now },
		NewGUID: func() string { n++; return fmt.Sprint(n) },
	}, reports: newReports(b)}
	return r, func(d time.Duration) { now = now.Add(d) }
}

func (r *Rep) runs(t *testing.T, command ...string) {
	t.Helper()
	if err := r.Audited(storage.WithCaller(t.Context(), "alice"), "c", storage.SessionExec, command, func() (*executor.Exit, error) {
		return &executor.Exit{}, nil
	}); err != nil {
		t.Error(err)
	}
}

func TestSessionsAreReportedAndWaitForABBSThatIsAway(t *testing.T) {
	b := &taker{err: errors.New("it is away")}
	r, pass := working(b)
	tell := func(want string) {
		t.Helper()
		r.tellSessions(t.Context())
		if got := b.take(); got != want {
			t.Errorf("it reports %q, want %q", got, want)
		}
	}
	tell("")
	r.runs(t, "ls")
	if at, waits := r.reports.due(); !waits || at.After(r.o.Now()) {
		t.Errorf("it is due %v at %v", waits, at)
	}
	first := "cell-1 2: 1 session_began 1 session_ended"
	tell(first)
	tell("") // it is not time yet
	r.runs(t, "ls")
	pass(r.o.RetryInterval)
	tell(first) // as it was, under the same id
	b.err = nil
	pass(r.o.RetryInterval)
	tell(first + "; cell-1 4: 3 session_began 3 session_ended")
	if _, waits := r.reports.due(); waits {
		t.Error("something still waits")
	}
	// What is refused is not repeated.
	b.err = &executor.ValidationError{}
	r.runs(t, "ls")
	tell("cell-1 6: 5 session_began 5 session_ended")
	b.err = nil
	pass(time.Hour)
	tell("")
}

func TestWhatWaitsForTheBBSIsBounded(t *testing.T) {
	b := &taker{err: errors.New("it is away")}
	r, pass := working(b)
	for range maxReports {
		r.runs(t, "ls") // two reports each
	}
	r.tellSessions(t.Context())
	b.err, b.calls = nil, nil
	pass(r.o.RetryInterval)
	r.tellSessions(t.Context())
	if n := strings.Count(strings.Join(b.calls, ""), "session_"); n != maxReports || len(b.calls) != maxReports/storage.MaxSessionEvents {
		t.Errorf("it reports %d in %d calls", n, len(b.calls))
	}
}

func TestSessionsThatEndAfterTheRepAreReportedAtOnce(t *testing.T) {
	b := &taker{}
	r, _ := working(b)
	r.reports.last()
	r.runs(t, "ls")
	if got, want := b.take(), "cell-1 2: 1 session_began; cell-1 3: 1 session_ended"; got != want {
		t.Errorf("it reports %q, want %q", got, want)
	}
}

func TestASessionIsReportedWithAllThatIsKnownAndWithinItsLimits(t *testing.T) {
	r, pass := working(&taker{})
	name := strings.Repeat("ä", storage.MaxIdentifierBytes)
	failed := errors.New(strings.Repeat("\xff", 1<<20))
	_ = r.Audited(storage.WithCaller(t.Context(), name), "c", storage.SessionCopyIn, []string{strings.Repeat("x\xff", 1<<20)}, func() (*executor.Exit, error) {
		pass(time.Second)
		return nil, failed
	})
	if len(r.reports.waiting) != 2 {
		t.Fatalf("%d reports wait", len(r.reports.waiting))
	}
	for i, e := range r.reports.waiting {
		var v executor.Validator
		if e.Validate(&v); v.Err() != nil {
			t.Error(v.Err())
		}
		if e.ProcessGUID != "web" || *e.Index != 0 || e.Domain != "apps" || e.CellID != "cell-1" || e.InstanceGUID != "c" || !strings.HasPrefix(name, strings.TrimSuffix(e.Caller, "…")) {
			t.Errorf("%+v", e)
		}
		if ended := i == 1; e.Failed != ended || ended && e.EndedAt.Sub(e.BeganAt) != time.Second {
			t.Errorf("%+v", e)
		}
	}
	// Nobody knows what a container of no work is for.
	r.o.Executor = one{}
	r.runs(t, "ls")
	if len(r.reports.waiting) != 2 {
		t.Error("a container that belongs to no work is reported")
	}
}
