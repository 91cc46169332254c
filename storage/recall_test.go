package storage_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// A dreamer recalls what it is told to, and refuses the first commits that come
// from that.
type dreamer struct {
	storage.Store
	recollection storage.Recollection
	refuses      error
	reads        int
	origins      []any
}

func (d *dreamer) Recall(string, int) (storage.Recollection, bool) { return d.recollection, true }

func (d *dreamer) Slot(ctx context.Context, guid string, index int) (lrp.Slot, *lrp.Deployment, error) {
	d.reads++
	return d.Store.Slot(ctx, guid, index)
}

func (d *dreamer) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	d.origins = append(d.origins, b.Origin)
	if b.Origin != nil && d.refuses != nil {
		return 0, d.refuses
	}
	b.Origin = nil // the store has not recalled it
	return d.Store.Commit(ctx, b)
}

// waiting is an unclaimed record at index 0.
func waiting(guid string) *lrp.ActualLRP {
	id := deployment(guid).ActiveDefinitionID
	return &lrp.ActualLRP{
		Key:   lrp.Key{ProcessGUID: guid, DefinitionID: id, Domain: deployment(guid).Domain},
		State: lrp.Unclaimed, Since: at, ModificationTag: lrp.ModificationTag{Epoch: 1},
	}
}

func TestADecisionFromMemoryCountsOnlyIfItIsCommitted(t *testing.T) {
	d := deployment("p")
	slot := lrp.Slot{ProcessGUID: "p", Index: 0}
	there := slot
	there.Records = []lrp.ActualLRP{*waiting("p")}
	stranger := errors.New("the database is away")
	for name, c := range map[string]struct {
		recalled     lrp.Slot
		deployment   *lrp.Deployment
		there        bool // the index has a record in truth
		refuses      error
		command      lrp.Command
		reads, tries int
		writes       int
		wantErr      error
	}{
		"the commit goes through":                     {recalled: slot, deployment: d, command: lrp.CreateMissing{}, tries: 1, writes: 1},
		"the commit conflicts":                        {recalled: slot, deployment: d, there: true, refuses: storage.ErrConflict, command: lrp.CreateMissing{}, reads: 1, tries: 1},
		"the commit fails":                            {recalled: slot, deployment: d, refuses: stranger, command: lrp.CreateMissing{}, tries: 1, wantErr: stranger},
		"the request was carried out before":          {recalled: slot, deployment: d, refuses: storage.ErrDuplicate, command: lrp.CreateMissing{}, tries: 1, wantErr: storage.ErrDuplicate},
		"memory says that there is nothing to do":     {recalled: there, deployment: d, command: lrp.CreateMissing{}, reads: 1, tries: 1, writes: 1},
		"memory says that the command makes no sense": {recalled: slot, deployment: d, there: true, command: lrp.Claim{Instance: lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}}, reads: 1, tries: 1, writes: 1},
		"memory says that the process is not desired": {recalled: slot, command: lrp.CreateMissing{}, reads: 1, tries: 1, writes: 1},
		"in truth the command makes no sense either":  {recalled: slot, deployment: d, command: lrp.Claim{Instance: lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}}, reads: 1, wantErr: lrp.ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s := &dreamer{Store: memstore.New(nil), recollection: storage.Recollection{Slot: c.recalled, Deployment: c.deployment, Origin: "memory"}, refuses: c.refuses}
			b := storage.Batch{Deployments: []storage.DeploymentWrite{{After: d}}}
			if c.there {
				b.ActualLRPs = []lrp.Write{{After: waiting("p")}}
			}
			commit(t, s.Store, b)
			var waits []time.Duration
			decision, _, err := storage.ApplySlot(t.Context(), s, "p", 0, instant(&waits), step(c.command))
			if !errors.Is(err, c.wantErr) || len(decision.Writes) != c.writes {
				t.Errorf("%d writes, error %v; want %d, %v", len(decision.Writes), err, c.writes, c.wantErr)
			}
			if s.reads != c.reads || len(s.origins) != c.tries || len(waits) != 0 {
				t.Errorf("%d reads, %d commits and the waits %v; want %d, %d and none", s.reads, len(s.origins), waits, c.reads, c.tries)
			}
		})
	}
}

func TestADecisionFromMemoryIsFencedAndMadeOnce(t *testing.T) {
	s := &dreamer{Store: memstore.New(nil), recollection: storage.Recollection{Slot: lrp.Slot{ProcessGUID: "p"}, Deployment: deployment("p"), Origin: "memory"}}
	commit(t, s.Store, storage.Batch{Deployments: []storage.DeploymentWrite{{After: deployment("p")}}})
	o := &storage.Options{RequestID: "once"}
	if _, _, err := storage.ApplySlot(t.Context(), s, "p", 0, o, step(lrp.CreateMissing{})); err != nil {
		t.Fatal(err)
	}
	s.recollection.Slot.Index = 1
	if _, _, err := storage.ApplySlot(t.Context(), s, "p", 1, o, step(lrp.CreateMissing{})); !errors.Is(err, storage.ErrDuplicate) {
		t.Errorf("%v, want a duplicate", err)
	}
	o = &storage.Options{Fence: storage.Fence{Kind: "leader", Name: "bbs", Epoch: 7}}
	if _, _, err := storage.ApplySlot(t.Context(), s, "p", 1, o, step(lrp.CreateMissing{})); !errors.Is(err, storage.ErrFenced) {
		t.Errorf("%v, want the fence", err)
	}
}

// A rivalWithMemory is a rival that lets its store's memory be asked.
type rivalWithMemory struct{ *rival }

func (r rivalWithMemory) Recall(guid string, index int) (storage.Recollection, bool) {
	return storage.Recall(r.Store, guid, index)
}

func TestADecisionIsMadeAgainWhenARecordIsAddedToTheSlotMeanwhile(t *testing.T) {
	for name, read := range map[string]bool{"from memory": false, "after a read": true} {
		t.Run(name, func(t *testing.T) {
			s := &rival{Store: memstore.New(nil)}
			commit(t, s.Store, storage.Batch{ActualLRPs: []lrp.Write{{After: waiting("p")}}})
			other := waiting("p")
			other.DefinitionID = "other"
			s.others = []func(storage.Store){func(inner storage.Store) { commit(t, inner, storage.Batch{ActualLRPs: []lrp.Write{{After: other}}}) }}
			var seen []int
			var waits []time.Duration
			_, _, err := storage.ApplySlot(t.Context(), rivalWithMemory{s}, "p", 0, instant(&waits), func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
				if seen = append(seen, len(slot.Records)); read && len(seen) == 1 {
					return lrp.Decision{}, nil // not to be answered from memory
				}
				before := slot.Records[0]
				after := before
				after.ModificationTag = before.ModificationTag.Next()
				return lrp.Decision{Writes: []lrp.Write{{Before: &before, After: &after}}}, nil
			})
			want := []int{1, 2}
			if read {
				want = []int{1, 1, 2}
			}
			if err != nil || !slices.Equal(seen, want) {
				t.Errorf("decided on slots with %v records, error %v; want %v", seen, err, want)
			}
		})
	}
}

func TestAMemoryThatIsNeverSureKeepsNoStepFromItsEnd(t *testing.T) {
	s := &dreamer{Store: memstore.New(nil), refuses: storage.ErrConflict,
		recollection: storage.Recollection{Slot: lrp.Slot{ProcessGUID: "p"}, Deployment: deployment("p"), Origin: "memory"}}
	commit(t, s.Store, storage.Batch{Deployments: []storage.DeploymentWrite{{After: deployment("p")}}})
	var waits []time.Duration
	decision, _, err := storage.ApplySlot(t.Context(), s, "p", 0, instant(&waits), step(lrp.CreateMissing{}))
	if err != nil || len(decision.Writes) != 1 {
		t.Errorf("%d writes, error %v", len(decision.Writes), err)
	}
	if want := []any{"memory", "memory", "memory", "memory", nil}; !slices.Equal(s.origins, want) {
		t.Errorf("committed with %v, want %v", s.origins, want)
	}
}
