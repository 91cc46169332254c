package bbs

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// A list of the roster is what decoding all leases gives, however often a cell moves,
// goes or writes what nobody can read.
func TestARosterListsWhatTheLeasesSay(t *testing.T) {
	store, cells := memstore.New(nil), new(roster)
	announced := func(p CellPresence) []byte {
		value, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	look := func(want ...CellPresence) {
		t.Helper()
		for range 2 { // the second time from memory
			got, err := cells.list(t.Context(), store)
			if all, _ := presences(t.Context(), store); err != nil || !reflect.DeepEqual(got, want) || !reflect.DeepEqual(got, all) {
				t.Errorf("got %+v, %v; want %+v, which are %+v without a memory", got, err, want, all)
			}
		}
	}
	held := map[string]storage.Lease{}
	say := func(cell string, value []byte) {
		t.Helper()
		l, err := store.Acquire(t.Context(), storage.Lease{Kind: storage.CellLease, Name: cell, Owner: "it", Value: value}, time.Hour)
		if err != nil {
			t.Fatal(err)
		}
		held[cell] = l
	}
	one, two := CellPresence{CellID: "cell-1", Address: "a", PlacementTags: []string{"gpu"}}, CellPresence{CellID: "cell-2", Address: "b"}
	say("cell-1", announced(one))
	say("cell-2", announced(two))
	look(one, two)
	one.Address, two.Address = two.Address, one.Address
	say("cell-1", announced(one))
	say("cell-2", announced(two))
	look(one, two)
	say("cell-1", []byte("{"))
	look(CellPresence{CellID: "cell-1"}, two)
	if err := store.Release(t.Context(), held["cell-2"]); err != nil {
		t.Fatal(err)
	}
	look(CellPresence{CellID: "cell-1"})
	say("cell-1", announced(one))
	look(one)

	over, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := cells.list(over, store); err == nil {
		t.Errorf("after its context has ended it lists %+v", got)
	}
}
