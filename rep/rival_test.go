package rep

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/storage"
)

func TestACellThatIsNotPresentSaysWhyAndWhatToDo(t *testing.T) {
	held := func(owner string, until time.Duration) error {
		return fmt.Errorf("announce: %w", &storage.HeldError{Lease: storage.Lease{Kind: storage.CellLease, Name: alpha.CellID, Owner: owner, ExpiresAt: start.Add(until)}})
	}
	const (
		present = "another run of cell %q is present: if it was killed"
		alive   = "another run of cell %q is alive and renews its presence: give one of the two another id"
		failed  = "cell %q could not be announced; it tries again: "
	)
	for _, test := range []struct {
		name string
		errs []error
		want string // empty if it is present
		log  string
	}{
		{"it was accepted", []error{nil}, "", ""},
		{"nobody answers", []error{errors.New("not reached")}, failed + "not reached", "WARN"},
		{"another run was seen once", []error{held("a", 0)}, present, "WARN"},
		{"another run does not renew its presence", []error{held("a", 0), held("a", 0), held("a", 0)}, present, "WARN"},
		{"another run renews its presence", []error{held("a", 0), held("a", 1)}, alive, "ERROR"},
		{"another run has renewed its presence", []error{held("a", 0), held("a", 1), held("a", 1)}, alive, "ERROR"},
		{"another run is followed by yet another", []error{held("a", 0), held("a", 1), held("b", 2)}, present, "WARN"},
		{"it is not said who is there", []error{errHeld, errHeld}, present, "WARN"},
		{"nobody answers any more", []error{held("a", 0), held("a", 1), errors.New("not reached")}, failed + "not reached", "WARN"},
		{"the other run has ended", []error{held("a", 0), held("a", 1), nil}, "", ""},
		{"the other run has come back", []error{held("a", 0), nil, held("a", 1)}, present, "WARN"},
	} {
		t.Run(test.name, func(t *testing.T) {
			announcer := &fakeAnnouncer{}
			now := start
			var log bytes.Buffer
			s := newStage(t, func(o *Options) {
				o.Announcer, o.Now = announcer, func() time.Time { return now }
				o.Logger = slog.New(slog.NewTextHandler(&log, nil))
			})
			if err := s.Absent(); err == nil || !strings.Contains(err.Error(), "has not been announced yet") {
				t.Errorf("at first it says %v", err)
			}
			for _, announcer.err = range test.errs {
				log.Reset()
				s.Tick(t.Context())
				now = now.Add(DefaultAnnounceInterval)
			}
			err := s.Absent()
			if s.Present() != (err == nil) || (err == nil) != (test.want == "") {
				t.Fatalf("it says %v", err)
			}
			if err == nil {
				return
			}
			if want := strings.Replace(test.want, "%q", strconv.Quote(alpha.CellID), 1); !strings.HasPrefix(err.Error(), want) || !errors.Is(err, announcer.err) {
				t.Errorf("it says %v, want %s", err, want)
			}
			if !strings.Contains(log.String(), "level="+test.log) {
				t.Errorf("the log is %s", log.String())
			}
			if n := strings.Count(log.String(), " cell="+alpha.CellID); n != strings.Count(log.String(), "\n") {
				t.Errorf("the cell is named %d times: %s", n, log.String())
			}
		})
	}
}
