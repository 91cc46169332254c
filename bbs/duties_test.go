package bbs_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage/memstore"
)

func TestDutiesThatNobodyHasConnectedSayThatWorkIsNotPlaced(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	store := memstore.New(nil)
	leadership, err := bbs.NewLeadership(bbs.LeadershipOptions{Store: store, Owner: "me"})
	must(err)
	duties, err := bbs.NewDuties(bbs.DutiesOptions{
		Store: store, Leadership: leadership, Concurrency: 1, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		Dial: func(bbs.CellPresence) (auction.CellClient, error) { return nil, errors.New("there is none") },
	})
	must(err)
	must(leadership.Tick(t.Context()))
	duties.Begin()
	must(duties.BBS.Desire(t.Context(), lrp.DesiredLRP{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1},
		Definition: lrp.Definition{RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}}}},
	}))
	must(duties.Look(t.Context()))
	must(duties.Act(t.Context()))
	if !strings.Contains(log.String(), "nobody places work") {
		t.Errorf("it says %q", log.String())
	}
}
