package diego_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/simulation"
	"github.com/diegosdk/diego/storage/memstore"
)

func TestAControlPlaneCanBeAskedOnceItIsReady(t *testing.T) {
	plane, err := diego.New(diego.Options{
		Store: memstore.New(nil), Owner: "me",
		Dial: func(diego.CellPresence) (auction.CellClient, error) { return nil, errors.New("there is none") },
	})
	if err != nil {
		t.Fatal(err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := plane.WaitReady(over); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "nobody is known to lead") {
		t.Errorf("before it runs it says %v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- plane.Run(ctx) }()
	if err := plane.WaitReady(ctx); err != nil {
		t.Error(err)
	}
	if err := plane.BBS.Desire(ctx, desired("web", 1)); err != nil {
		t.Errorf("it is ready and says %v", err)
	}
	stop()
	<-ended
}

func TestALeaderThatMeetsItsNamesakeSaysSo(t *testing.T) {
	clock := simulation.NewClock()
	store := memstore.New(&memstore.Options{Now: clock.Now})
	var log bytes.Buffer
	lead := func() *diego.Leadership {
		l, err := diego.NewLeadership(diego.LeadershipOptions{Store: store, Owner: "me", Now: clock.Now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l
	}
	first, second := lead(), lead()
	if log.Len() > 0 {
		t.Errorf("it says %s before anybody has noticed", &log)
	}
	if err := first.Tick(t.Context()); err != nil || !strings.Contains(log.String(), "another process has the same name") {
		t.Errorf("the first one says %q, %v", &log, err)
	}
	if leads, _ := second.Leading(); !leads {
		t.Error("the second one does not lead")
	}
	// One that was late has lost the leadership rightly.
	log.Reset()
	third := lead()
	clock.Advance(diego.MaxPresenceTTL)
	fourth := lead()
	if err := third.Tick(t.Context()); err != nil || log.Len() > 0 {
		t.Errorf("one that was late says %q, %v", &log, err)
	}
	if leads, _ := fourth.Leading(); !leads {
		t.Error("the last one does not lead")
	}
}
