package rep

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

func (r *Rep) refuses(caller string, times int) {
	for range times {
		r.Refused(storage.WithCaller(context.Background(), caller), "c", storage.SessionExec, []string{"ls"}, errors.New("it may not"))
	}
}

// taken are the reports that wait, as caller and unreported.
func (r *Rep) taken(t *testing.T) (list []string) {
	t.Helper()
	for _, e := range r.reports.waiting {
		var v executor.Validator
		if e.Validate(&v); v.Err() != nil || e.EventKind() != storage.KindSessionRefused || e.End != "it may not" || e.ProcessGUID != "web" {
			t.Errorf("%+v, %v", e, v.Err())
		}
		list = append(list, fmt.Sprint(e.Caller, " ", e.Unreported))
	}
	r.reports.waiting = nil
	return list
}

func TestARefusedSessionIsReportedAndAFloodOfThemIsCounted(t *testing.T) {
	r, pass := working(&taker{})
	var log bytes.Buffer
	r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r.refuses("mallory", refusalsEach+1000)
	r.refuses("alice", 1)
	if got := r.taken(t); len(got) != refusalsEach+1 || got[0] != "mallory 0" || got[refusalsEach] != "alice 0" {
		t.Errorf("it reports %q", got)
	}
	if n := strings.Count(log.String(), "a session was refused"); n != refusalsEach+1 {
		t.Errorf("the log has %d lines", n)
	}
	pass(refusalTime)
	r.refuses("alice", 1) // mallory's are not forgotten meanwhile
	pass(refusalTime)
	r.refuses("mallory", 2)
	if got := strings.Join(r.taken(t), ", "); got != "alice 0, mallory 1000, mallory 0" {
		t.Errorf("it reports %q", got)
	}
	// A clock that goes back holds nothing up.
	r.refuses("mallory", refusalsEach)
	r.reports.waiting = nil
	pass(-24 * time.Hour)
	r.refuses("mallory", 1)
	if got := strings.Join(r.taken(t), ", "); got != "mallory 2" {
		t.Errorf("after the clock went back it reports %q", got)
	}
}

func TestARefusedSessionInAContainerOfNoWorkIsInTheLogOnly(t *testing.T) {
	r, _ := working(&taker{})
	var log bytes.Buffer
	r.o.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r.o.Executor = one{}
	r.Refused(storage.WithCaller(t.Context(), "mallory"), strings.Repeat("x", 1<<20), storage.SessionCopyIn, []string{"/etc"}, errors.New(strings.Repeat("y", 1<<20)))
	if got := r.taken(t); len(got) != 0 {
		t.Errorf("it reports %q", got)
	}
	if text := log.String(); !strings.Contains(text, `msg="a session was refused" kind=copy_in caller=mallory container=xxx`) || len(text) > 4<<10 {
		t.Errorf("the log has %d bytes, such as %.200s", len(text), text)
	}
}

// Attempts on containers of no work do not use up what the BBS hears of one.
func TestRefusalsOfNoWorkKeepNoneFromTheEvents(t *testing.T) {
	r, _ := working(&taker{})
	work := r.o.Executor
	r.o.Executor = one{}
	r.refuses("mallory", 3*refusalsEach)
	r.o.Executor = work
	r.refuses("mallory", 1)
	if got := strings.Join(r.taken(t), ", "); got != "mallory 0" {
		t.Errorf("it reports %q", got)
	}
}
