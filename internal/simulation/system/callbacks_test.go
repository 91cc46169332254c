package system_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A receiver is a consumer's callback on loopback. It answers with the statuses
// in turn, and with the last one for ever.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	statuses []int
	got      []task.CallbackResponse
}

func newReceiver(t *testing.T, statuses ...int) *receiver {
	r := &receiver{statuses: statuses}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		var response task.CallbackResponse
		if err = errors.Join(err, json.Unmarshal(body, &response)); err != nil {
			t.Error(err)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.got = append(r.got, response)
		w.WriteHeader(r.statuses[0])
		if len(r.statuses) > 1 {
			r.statuses = r.statuses[1:]
		}
	}))
	t.Cleanup(r.Close)
	return r
}

// runTask runs a task to its end.
func (s *system) runTask(guid, callback string) {
	s.t.Helper()
	s.must(s.BBS.DesireTask(s.ctx, desiredTask(guid, callback)))
	s.step()
	s.cells.Step(s.ctx)
	if got := s.task(guid); got.State != task.Completed {
		s.t.Fatalf("got %v, want COMPLETED", got.State)
	}
}

func TestACompletionIsPostedAndItsTaskDeleted(t *testing.T) {
	r := newReceiver(t, http.StatusOK)
	s := newSystem(t, 1, nil)
	s.runTask("job", r.URL)
	s.step()
	if len(r.got) != 1 || r.got[0].TaskGUID != "job" || r.got[0].Failed {
		t.Errorf("the consumer got %+v", r.got)
	}
	if _, err := s.BBS.Task(s.ctx, "job"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v, want the task to be gone", err)
	}
}

func TestACallbackThatFailsIsTriedAgainLater(t *testing.T) {
	r := newReceiver(t, http.StatusServiceUnavailable, http.StatusInternalServerError, http.StatusOK)
	s := newSystem(t, 1, nil)
	s.runTask("job", r.URL)
	s.step()
	s.step()
	if len(r.got) != 1 || s.task("job").State != task.Resolving {
		t.Fatalf("after 0 s: %d attempts, the task is %v", len(r.got), s.task("job").State)
	}
	s.pass(time.Second)
	if len(r.got) != 2 {
		t.Fatalf("after 1 s: %d attempts, want 2", len(r.got))
	}
	s.pass(2 * time.Second)
	if _, err := s.BBS.Task(s.ctx, "job"); len(r.got) != 3 || !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("after 3 s: %d attempts, %v", len(r.got), err)
	}
}

func TestACallbackThatIsRefusedLeavesTheTaskToBePolled(t *testing.T) {
	r := newReceiver(t, http.StatusForbidden)
	s := newSystem(t, 1, nil)
	s.runTask("job", r.URL)
	s.step()
	s.pass(10 * time.Second)
	if got := s.task("job"); len(r.got) != 1 || got.State != task.Resolving {
		t.Errorf("got %d attempts and task %v, want 1 and RESOLVING", len(r.got), got.State)
	}
	s.pass(3 * time.Minute)
	if _, err := s.BBS.Task(s.ctx, "job"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("three minutes later got %v, want the task to be gone", err)
	}
}

func TestNobodyIsToldOfATaskThatWasDeletedBetweenTwoAttempts(t *testing.T) {
	r := newReceiver(t, http.StatusServiceUnavailable, http.StatusOK)
	s := newSystem(t, 1, nil)
	s.runTask("job", r.URL)
	s.step()
	s.must(s.BBS.DeleteTask(s.ctx, "job"))
	s.pass(time.Minute)
	if len(r.got) != 1 {
		t.Errorf("the consumer was told %d times, and had deleted the task after the first", len(r.got))
	}
}

func TestACallbackInHandSurvivesTheLossOfItsLeader(t *testing.T) {
	for _, when := range []string{"before it is made", "while it is made", "before the task is deleted"} {
		t.Run(when, func(t *testing.T) {
			var told []string
			lose := true
			var s *system
			bad := &badStore{}
			s = newSystem(t, 1, func(o *diego.Options) {
				bad.Store, o.Store = o.Store, bad
				o.Post = func(_ context.Context, _ string, r task.CallbackResponse) int {
					if when == "while it is made" && lose {
						bad.before, bad.renew = func() error { return errBroken }, errBroken
						return 0
					}
					told = append(told, r.TaskGUID)
					if when == "before the task is deleted" && lose {
						bad.before, bad.renew = func() error { return errBroken }, errBroken
					}
					return 200
				}
			})
			s.runTask("job", "http://consumer.example/")
			if when != "before it is made" {
				_ = s.Tick(s.ctx)
			}
			lose = false
			s.clock.Advance(20 * time.Second)
			s.ControlPlane = s.plane("plane-2", func(o *diego.Options) {
				o.Post = func(_ context.Context, _ string, r task.CallbackResponse) int {
					told = append(told, r.TaskGUID)
					return 200
				}
			})
			s.BBS = s.asked(s.ControlPlane)
			s.cells.ReportTo(s.BBS)
			s.pass(75 * time.Second)
			if _, err := s.BBS.Task(s.ctx, "job"); !errors.Is(err, storage.ErrNotFound) || !slices.Contains(told, "job") {
				t.Errorf("the consumer was told %q, and the task: %v", told, err)
			}
			if want := map[string]int{"before the task is deleted": 2}[when]; len(told) != max(want, 1) {
				t.Errorf("the consumer was told %d times, want %d", len(told), max(want, 1))
			}
		})
	}
}

func TestARedirectIsFollowedIfTheCompletionCanBeSentAgain(t *testing.T) {
	r := newReceiver(t, http.StatusOK)
	for status, want := range map[int]int{http.StatusTemporaryRedirect: http.StatusOK, http.StatusFound: http.StatusFound} {
		elsewhere := httptest.NewServer(http.RedirectHandler(r.URL, status))
		t.Cleanup(elsewhere.Close)
		got := bbs.PostJSON(&http.Client{})(t.Context(), elsewhere.URL, task.CallbackResponse{TaskGUID: "job", CreatedAt: time.Unix(1, 0)})
		if got != want {
			t.Errorf("after redirect %d got status %d, want %d", status, got, want)
		}
	}
	if len(r.got) != 1 || r.got[0].TaskGUID != "job" {
		t.Errorf("the consumer got %+v, want the completion once", r.got)
	}
}

func TestACallbackReachesThisHostOnlyIfItIsAllowed(t *testing.T) {
	r := newReceiver(t, http.StatusOK)
	_, port, err := net.SplitHostPort(r.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"127.0.0.1", "localhost", "[::ffff:127.0.0.1]", "0.0.0.0"} {
		status := bbs.PostJSON(nil)(t.Context(), "http://"+net.JoinHostPort(strings.Trim(host, "[]"), port), task.CallbackResponse{TaskGUID: "job", CreatedAt: time.Unix(1, 0)})
		if status != http.StatusBadRequest || len(r.got) > 0 {
			t.Errorf("%s: status %d, reached %d times", host, status, len(r.got))
		}
	}
	var log bytes.Buffer
	for _, allow := range [][]netip.Prefix{nil, {netip.MustParsePrefix("127.0.0.0/8")}} {
		s := newSystem(t, 1, func(o *diego.Options) {
			o.CallbackAllow, o.Logger = allow, slog.New(slog.NewTextHandler(&log, nil))
		})
		s.runTask("job", r.URL+"/?token=secret")
		s.step()
		if (len(r.got) == 1) != (allow != nil) {
			t.Errorf("with %v allowed the consumer got %v", allow, r.got)
		}
	}
	if !strings.Contains(log.String(), "127.0.0.1 is in 127.0.0.0/8, which is denied here") || !strings.Contains(log.String(), "callback_allow") {
		t.Errorf("the log has %s", &log)
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log has the query of the URL: %s", &log)
	}
}

func TestCallbacksThatCannotBeSentCountAsNoAnswer(t *testing.T) {
	post := bbs.PostJSON(&http.Client{})
	if status := post(t.Context(), "http://127.0.0.1:1/", task.CallbackResponse{CreatedAt: time.Unix(1, 0)}); status != 0 {
		t.Errorf("got status %d from nobody", status)
	}
	if status := post(t.Context(), "http://[::1", task.CallbackResponse{CreatedAt: time.Unix(1, 0)}); status != http.StatusBadRequest {
		t.Errorf("got status %d for a URL that is none", status)
	}
}
