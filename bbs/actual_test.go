package bbs_test

import (
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// A process is deleted while a cell is missing, and made again in another
// domain: both instances are recorded at its index.
func TestARecordOfAnotherDomainHidesOneThatAListByDomainWants(t *testing.T) {
	now := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	record := func(process, domain, guid string, presence lrp.Presence, tag int64) *lrp.ActualLRP {
		return &lrp.ActualLRP{
			Key:         lrp.Key{ProcessGUID: process, DefinitionID: "v1", Domain: domain},
			InstanceKey: lrp.InstanceKey{InstanceGUID: guid, CellID: "cell-" + guid},
			Presence:    presence, State: lrp.Running, Since: now, RunningSince: now, Routable: true,
			ModificationTag: lrp.ModificationTag{Epoch: tag},
		}
	}
	store := memstore.New(nil)
	if _, err := store.Commit(t.Context(), storage.Batch{ActualLRPs: []lrp.Write{
		{After: record("blog", "old", "1", lrp.Ordinary, 1)},
		{After: record("web", "old", "2", lrp.Suspect, 2)},
		{After: record("web", "new", "3", lrp.Ordinary, 3)},
	}}); err != nil {
		t.Fatal(err)
	}
	service, err := bbs.New(bbs.Options{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	for domain, want := range map[string]string{"old": "1", "new": "3"} {
		for name, processes := range map[string][]string{"all": nil, "two": {"blog", "web"}} {
			var got string
			for r, err := range service.ResolvedLRPs(t.Context(), storage.ActualLRPFilter{Domains: []string{domain}, ProcessGUIDs: processes}) {
				if err != nil {
					t.Fatal(err)
				}
				got += r.InstanceGUID
			}
			if got != want {
				t.Errorf("of domain %s, %s processes: instances %q, want %q", domain, name, got, want)
			}
		}
	}
}
