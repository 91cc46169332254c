package rep

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// one is an executor with one container.
type one struct {
	Executor
	c executor.Container
}

func (o one) Get(string) (executor.Container, bool) { return o.c, true }

func TestTheLogSaysWhoWorkedInAContainerAndHowItEnded(t *testing.T) {
	var log bytes.Buffer
	now := time.Unix(1_700_000_000, 0)
	r := &Rep{o: Options{
		Logger: slog.New(slog.NewTextHandler(&log, nil)), Executor: one{},
		Now: func() time.Time { now = now.Add(time.Second); return now },
	}}
	failed := errors.New("it broke")
	for _, tt := range []struct {
		end   *executor.Exit
		err   error
		wants string
	}{
		{&executor.Exit{Status: 3}, nil, `msg="a session has ended" kind=exec caller=alice container=c work="" command="[ls -l]" took=1s end="exit status 3"`},
		{nil, nil, `msg="a session has ended" kind=exec caller=alice container=c work="" command="[ls -l]" took=1s`},
		{nil, failed, `msg="a session has failed" kind=exec caller=alice container=c work="" command="[ls -l]" took=1s err="it broke"`},
	} {
		log.Reset()
		err := r.Audited(storage.WithCaller(t.Context(), "alice"), "c", "exec", []string{"ls", "-l"}, func() (*executor.Exit, error) {
			if got := log.String(); !strings.Contains(got, `msg="a session begins" kind=exec caller=alice container=c`) {
				t.Errorf("while it lasts the log says %s", got)
			}
			return tt.end, tt.err
		})
		if !errors.Is(err, tt.err) || !strings.HasSuffix(log.String(), tt.wants+"\n") {
			t.Errorf("%v: the log says\n%swant at the end\n%s", err, &log, tt.wants)
		}
	}
}

func TestAnAuditShowsTheBeginningOfALongCommand(t *testing.T) {
	got := shortened([]string{"sh", "-c", strings.Repeat("é", maxAuditedBytes), "more"})
	if text := strings.Join(got, " "); len(got) != 3 || len(text) > maxAuditedBytes+len("…") || !strings.HasPrefix(text, "sh -c éé") || !strings.HasSuffix(text, "é…") {
		t.Errorf("of %d arguments %d bytes: %q", len(got), len(text), text)
	}
}
