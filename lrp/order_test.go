package lrp_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/diegosdk/diego/lrp"
)

func TestRecordsAreOrderedByProcessIndexDefinitionAndPresence(t *testing.T) {
	ordered := []lrp.ActualLRP{
		{Key: lrp.Key{ProcessGUID: "B", Index: 9}}, // by bytes, so upper case comes first
		{Key: lrp.Key{ProcessGUID: "a", Index: 0, DefinitionID: "v1"}},
		{Key: lrp.Key{ProcessGUID: "a", Index: 0, DefinitionID: "v1"}, Presence: lrp.Evacuating},
		{Key: lrp.Key{ProcessGUID: "a", Index: 0, DefinitionID: "v1"}, Presence: lrp.Suspect},
		{Key: lrp.Key{ProcessGUID: "a", Index: 0, DefinitionID: "v2"}},
		{Key: lrp.Key{ProcessGUID: "a", Index: 2, DefinitionID: "v1"}},
		{Key: lrp.Key{ProcessGUID: "a", Index: 10, DefinitionID: "v1"}}, // by number
		{Key: lrp.Key{ProcessGUID: "aa", Index: 0}},
	}
	place := func(r lrp.ActualLRP) string { return fmt.Sprint(r.Key, r.Presence) }
	for seed := range uint64(20) {
		mixed := slices.Clone(ordered)
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
		lrp.SortRecords(mixed)
		if !slices.EqualFunc(mixed, ordered, func(a, b lrp.ActualLRP) bool { return place(a) == place(b) }) {
			t.Fatalf("seed %d: got %v", seed, mixed)
		}
	}
	newer := ordered[1]
	newer.State, newer.ModificationTag.Index, newer.Domain = lrp.Running, 7, "another"
	if lrp.CompareRecords(&ordered[1], &newer) != 0 {
		t.Error("two versions of one record are told apart")
	}
}
