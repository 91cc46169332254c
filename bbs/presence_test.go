package bbs_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

func TestACellWatchTellsWhoComesAndGoes(t *testing.T) {
	clock := memcell.NewClock()
	store := memstore.New(&memstore.Options{Now: clock.Now})
	cells := memcell.NewFleet(3, clock)
	changes := 0
	watch := bbs.NewCellWatch(store, func() { changes++ })
	look := func(wantCame, wantGone []string, wantChanges int) {
		t.Helper()
		came, gone, err := watch.Tick(t.Context())
		if err != nil || !slices.Equal(came, wantCame) || !slices.Equal(gone, wantGone) || changes != wantChanges {
			t.Errorf("got %q, %q, %v after %d changes; want %q, %q after %d", came, gone, err, changes, wantCame, wantGone, wantChanges)
		}
	}
	if err := cells[:2].Announce(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	look([]string{"cell-1", "cell-2"}, nil, 0)
	look(nil, nil, 0)
	clock.Advance(10 * time.Second)
	if err := cells[1:].Announce(t.Context(), store); err != nil {
		t.Fatal(err)
	}
	look([]string{"cell-3"}, nil, 1)
	clock.Advance(5 * time.Second)
	look(nil, []string{"cell-1"}, 2)
}

func TestAnAnnouncerKeepsItsCellPresentAndLeaves(t *testing.T) {
	clock := memcell.NewClock()
	store := memstore.New(&memstore.Options{Now: clock.Now})
	announcer := func(owner string) *bbs.Announcer {
		a, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{
			Store: store, Presence: bbs.CellPresence{CellID: "cell-1"}, Owner: owner, TTL: time.Minute,
		})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first, second := announcer("first"), announcer("second")
	for range 5 {
		if err := first.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
		clock.Advance(59 * time.Second)
	}
	if err := second.Tick(t.Context()); !errors.Is(err, storage.ErrHeld) {
		t.Errorf("got %v, want ErrHeld", err)
	}
	if err := first.Leave(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := second.Tick(t.Context()); err != nil {
		t.Errorf("the cell has left, and its next run cannot come: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := second.Run(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	for lease, err := range store.Leases(t.Context(), storage.CellLease) {
		t.Errorf("got lease %+v, %v after the cell has left", lease, err)
	}
	for _, o := range []bbs.AnnouncerOptions{{}, {Store: store, Owner: "me", Presence: bbs.CellPresence{CellID: "cell-1"}, TTL: -1},
		{Store: store, Owner: "me", Presence: bbs.CellPresence{CellID: "cell-1"}, TTL: bbs.MaxPresenceTTL + 1}} {
		if _, err := bbs.NewAnnouncer(o); !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("%+v: got %v, want a validation error", o, err)
		}
	}
}

func TestAPresenceNamesTheVolumeDriversOfTheMoment(t *testing.T) {
	store := memstore.New(nil)
	control, err := bbs.New(bbs.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	var drivers []string
	o := bbs.AnnouncerOptions{
		Presence: bbs.CellPresence{CellID: "cell-1"}, Owner: "first", VolumeDrivers: func() []string { return drivers },
	}
	direct, remote := o, o
	direct.Store, remote.BBS = store, control
	for name, o := range map[string]bbs.AnnouncerOptions{"through a store": direct, "through a BBS": remote} {
		a, err := bbs.NewAnnouncer(o)
		if err != nil {
			t.Fatal(err)
		}
		for _, drivers = range [][]string{{"nfs", "smb"}, {"smb"}, nil} {
			if err := a.Tick(t.Context()); err != nil {
				t.Fatal(err)
			}
			if cells, err := control.Cells(t.Context()); err != nil || len(cells) != 1 || !slices.Equal(cells[0].VolumeDrivers, drivers) {
				t.Errorf("%s: the cells are %+v, %v; want the drivers %q", name, cells, err, drivers)
			}
		}
	}
}

func TestACellThatIsDialledToNothingIsSilentAndSaysWhy(t *testing.T) {
	list := func(context.Context) ([]bbs.CellPresence, error) {
		return []bbs.CellPresence{{CellID: "cell-1"}}, nil
	}
	cells, err := bbs.NewDirectory(list, func(bbs.CellPresence) (auction.CellClient, error) { return nil, nil }).Cells(t.Context())
	if err != nil || len(cells) != 1 {
		t.Fatal(cells, err)
	}
	if _, err := cells[0].Client.State(t.Context()); err == nil || !strings.Contains(err.Error(), "neither a client nor an error") {
		t.Errorf("its state is %v", err)
	}
}
