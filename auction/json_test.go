package auction_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
)

func TestAResultSurvivesJSON(t *testing.T) {
	cells := fleetOf(3, 1024)
	cells[2].ID = cells[1].ID // both are invalid
	work := []auction.Item{
		{Key: auction.Key{GUID: "web", DefinitionID: "v1"}, Resources: executor.Resources{MemoryMB: 64}, RootFS: "preloaded:linux", QueuedAt: time.Unix(9, 0).UTC()},
		{Key: auction.Key{GUID: "huge", DefinitionID: "v1"}, Resources: executor.Resources{MemoryMB: 1 << 20}, RootFS: "preloaded:linux"},
		{Key: auction.Key{GUID: "wrong"}, RootFS: "linux"},
		{Key: auction.Key{Kind: auction.Task, GUID: "job"}, RootFS: "preloaded:linux"},
	}
	want, err := auction.Place(cells, work, auction.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	if len(want.InvalidCells) != 1 || len(want.Refusals) != 2 || len(want.Placements) != 2 {
		t.Fatalf("got %+v", want)
	}
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got auction.Result
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	if !errors.Is(got.InvalidCells[0].Err, executor.ErrInvalid) {
		t.Errorf("got %v", got.InvalidCells[0].Err)
	}
}

func TestAKindIsText(t *testing.T) {
	for kind, text := range map[auction.Kind]string{auction.LRP: "lrp", auction.Task: "task"} {
		got, err := kind.MarshalText()
		if err != nil || string(got) != text {
			t.Errorf("got %q, %v", got, err)
		}
		var back auction.Kind
		if err := back.UnmarshalText(got); err != nil || back != kind {
			t.Errorf("got %v, %v", back, err)
		}
	}
	var k auction.Kind
	if err := k.UnmarshalText([]byte("LRP")); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if _, err := auction.Kind(7).MarshalText(); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	for _, text := range []string{`{"invalid":3}`, `[]`} {
		if json.Unmarshal([]byte(text), new(auction.Refusal)) == nil || json.Unmarshal([]byte(text), new(auction.InvalidCell)) == nil {
			t.Errorf("%s was read", text)
		}
	}
}
