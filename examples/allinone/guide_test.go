package main

import (
	"context"
	"errors"
	"io"
	"iter"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// A countedStore counts how often its instances are read.
type countedStore struct {
	storage.Store
	reads int
}

func (s *countedStore) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	s.reads++
	return s.Store.ActualLRPs(ctx, f)
}

func TestTheGuideReadsNoInstancesWhileEventsAreStillToBeTold(t *testing.T) {
	store := &countedStore{Store: memstore.New(nil)}
	plane, err := diego.New(diego.Options{Store: store, Owner: "test", Dial: func(bbs.CellPresence) (auction.CellClient, error) {
		return nil, errors.New("there are no cells")
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := plane.Leadership.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	f := &fleet{ControlPlane: plane, began: time.Now()}
	if err := f.desireSample(t.Context()); err != nil {
		t.Fatal(err)
	}
	log, err := f.BBS.Log(t.Context())
	if err != nil || log.Newest < 2 {
		t.Fatalf("the log of events is %+v, %v", log, err)
	}
	store.reads = 0
	for told := storage.Cursor(0); told < log.Newest; told++ {
		if f.guide(t.Context(), io.Discard, told) {
			t.Errorf("with %d of %d events told it is guided", told, log.Newest)
		}
	}
	if store.reads > 0 {
		t.Errorf("%d events were told with %d reads of the instances", log.Newest, store.reads)
	}
	if f.guide(t.Context(), io.Discard, log.Newest) || store.reads != 1 {
		t.Errorf("when all was told there were %d reads, want 1", store.reads)
	}
}
