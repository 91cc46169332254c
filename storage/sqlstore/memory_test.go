package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/memory"
	"github.com/diegosdk/diego/storage/storagetest"
)

// apply makes one step of a slot.
func apply(t testing.TB, s storage.Store, guid string, index int, c lrp.Command) error {
	_, _, err := storage.ApplySlot(t.Context(), s, guid, index, nil, func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
		return lrp.Step(slot, d, c, time.Now(), lrp.Policy{})
	})
	return err
}

// desire creates a process.
func desire(t testing.TB, s storage.Store, guid string, instances int) {
	t.Helper()
	if _, _, err := storage.ApplyDeployment(t.Context(), s, guid, nil, func(*lrp.Deployment) (lrp.Change, error) {
		return lrp.Create(lrp.DeploymentDefinition{
			ProcessGUID: guid, Domain: "apps", Settings: lrp.Settings{Instances: instances},
			DefinitionID: "v1", Definition: desired(guid, 1).Definitions[guid],
		}, time.Now())
	}); err != nil {
		t.Fatal(err)
	}
}

// eagerly opens a store that asks its memory again at once after others have
// committed.
func eagerly(t testing.TB, dsn string, o Options) *Store {
	s := mustOpen(t, dsn, o)
	s.memory.Pause = 0
	return s
}

// truth is the slot as the database has it.
func truth(t testing.TB, s storage.Reader, guid string, index int) (lrp.Slot, *lrp.Deployment) {
	t.Helper()
	slot, d, err := s.Slot(context.Background(), guid, index)
	if err != nil {
		t.Fatal(err)
	}
	return slot, d
}

// claim decides from a recollection.
func claim(t *testing.T, r storage.Recollection) storage.Batch {
	t.Helper()
	decision, err := lrp.Step(r.Slot, r.Deployment, lrp.Claim{Instance: lrp.InstanceKey{InstanceGUID: "j", CellID: "d"}}, time.Now(), lrp.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	b := storage.Batch{Origin: r.Origin}
	b.AddLRP(r.Slot, r.Deployment, decision)
	return b
}

func TestASlotIsRecalledAsTheLastCommitLeftIt(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s, other := mustOpen(t, dsn, Options{}), mustOpen(t, dsn, Options{})
		if _, ok := s.Recall("web", 0); ok {
			t.Error("a slot that nobody has read is recalled")
		}
		desire(t, s, "web", 2)
		me := lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}
		for _, c := range []lrp.Command{lrp.CreateMissing{}, lrp.Claim{Instance: me}, lrp.Start{Instance: me}, lrp.Crash{Instance: me, Reason: "exit 1"}} {
			if err := apply(t, s, "web", 0, c); err != nil {
				t.Fatal(err)
			}
			r, ok := s.Recall("web", 0)
			slot, d := truth(t, other, "web", 0)
			if !ok || !storagetest.Equal(r.Slot, slot) || !storagetest.Equal(r.Deployment, d) {
				t.Errorf("after %s: recalled %v %+v %+v\nwant %+v %+v", c.Name(), ok, r.Slot, r.Deployment, slot, d)
			}
		}
		if err := apply(t, s, "web", 1, lrp.CreateMissing{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := storage.ApplyDeployment(t.Context(), s, "web", nil, func(d *lrp.Deployment) (lrp.Change, error) {
			one := 1
			return d.Update(lrp.Update{Instances: &one})
		}); err != nil {
			t.Fatal(err)
		}
		if r, ok := s.Recall("web", 1); !ok || r.Deployment.Instances != 1 {
			t.Errorf("recalled %v %+v, want one instance", ok, r.Deployment)
		}
		// A recollection is the caller's: nothing that he does to it comes back.
		r, _ := s.Recall("web", 0)
		r.Slot.Records[0].State = lrp.Running
		if r, _ := s.Recall("web", 0); r.Slot.Records[0].State == lrp.Running {
			t.Error("a caller has changed what is remembered")
		}
	})
}

// Two stores and transactions of a caller's do random things to one database.
// What a store recalls may be out of date, but then nothing comes of it.
func TestNothingIsCommittedThatWasDecidedFromAnOldMemory(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	eachDatabase(t, func(t *testing.T, dsn string) {
		rng := rand.New(rand.NewPCG(seed, 0))
		stores := []*Store{eagerly(t, dsn, Options{}), eagerly(t, dsn, Options{}), eagerly(t, dsn, Options{Remember: 3})}
		guids := []string{"a", "b"}
		for _, guid := range guids {
			desire(t, stores[0], guid, 2)
		}
		command := func() lrp.Command {
			i := lrp.InstanceKey{InstanceGUID: fmt.Sprint("i", rng.IntN(2)), CellID: fmt.Sprint("c", rng.IntN(2))}
			switch rng.IntN(9) {
			case 0, 1:
				return lrp.Claim{Instance: i}
			case 2:
				return lrp.Start{Instance: i}
			case 3:
				return lrp.Crash{Instance: i, Reason: "exit 1"}
			case 4:
				return lrp.Remove{Instance: i}
			case 5:
				return lrp.EvacuateRunning{Instance: i}
			case 6:
				return lrp.RemoveEvacuating{Instance: i}
			default:
				return lrp.CreateMissing{}
			}
		}
		committed, refused, old := 0, 0, 0
		for range 600 {
			s, guid, index, c := stores[max(0, rng.IntN(9)-6)], guids[rng.IntN(2)], rng.IntN(3), command()
			switch rng.IntN(8) {
			case 0: // another consumer
				_, _, err := storage.ApplyDeployment(t.Context(), s, guid, nil, func(d *lrp.Deployment) (lrp.Change, error) {
					n := rng.IntN(4)
					return d.Update(lrp.Update{Instances: &n})
				})
				if err != nil {
					t.Fatal(err)
				}
				continue
			case 1: // a transaction of the caller's
				tx, err := s.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				err = apply(t, s.WithTx(tx), guid, index, c)
				if rng.IntN(2) == 0 && err == nil {
					err = tx.Commit()
				} else {
					err = tx.Rollback()
				}
				if err != nil {
					t.Fatal(err)
				}
				continue
			}
			r, ok := s.Recall(guid, index)
			if !ok {
				_ = apply(t, s, guid, index, c) // the slot may refuse it
				continue
			}
			slot, d := truth(t, stores[0], guid, index)
			right := storagetest.Equal(r.Slot, slot) && storagetest.Equal(r.Deployment, d)
			if !right {
				old++
			}
			decision, err := lrp.Step(r.Slot, r.Deployment, c, time.Now(), lrp.Policy{})
			if err != nil || decision.Deployment != nil || len(decision.Writes) == 0 {
				continue
			}
			b := storage.Batch{Origin: r.Origin}
			b.AddLRP(r.Slot, r.Deployment, decision)
			switch _, err = s.Commit(t.Context(), b); {
			case err == nil && !right:
				t.Fatalf("seed %d: %s of %s/%d was committed from %+v %+v\nbut it was %+v %+v", seed, c.Name(), guid, index, r.Slot, r.Deployment, slot, d)
			case err == nil:
				committed++
			case errors.Is(err, storage.ErrConflict):
				refused++
			default:
				t.Fatal(err)
			}
		}
		t.Logf("%d committed, %d refused, %d recalled that were out of date", committed, refused, old)
		if committed == 0 || refused == 0 || old == 0 {
			t.Error("that shows nothing")
		}
	})
}

func TestARecordThatWasAddedMakesTheMemoryOfTheOthersOld(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := eagerly(t, dsn, Options{})
		other := mustOpen(t, dsn, Options{})
		for name, add := range map[string]func(storage.Batch) error{
			"this process": func(b storage.Batch) error { _, err := s.Commit(t.Context(), b); return err },
			"another":      func(b storage.Batch) error { _, err := other.Commit(t.Context(), b); return err },
		} {
			t.Run(name, func(t *testing.T) {
				guid := "app-" + name[:4]
				desire(t, s, guid, 2)
				if err := apply(t, s, guid, 0, lrp.CreateMissing{}); err != nil {
					t.Fatal(err)
				}
				r, ok := s.Recall(guid, 0)
				if !ok {
					t.Fatal("not recalled")
				}
				// Of another definition.
				if err := add(creation(unclaimed(guid, 0))); err != nil {
					t.Fatal(err)
				}
				// None of the records that the decision looks at has changed.
				if _, err := s.Commit(t.Context(), claim(t, r)); !errors.Is(err, storage.ErrConflict) {
					t.Errorf("%v, want a conflict", err)
				}
			})
		}
	})
}

func TestARecordThatIsAddedInTheSameGroupMakesTheMemoryOfTheOthersOld(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		desire(t, s, "web", 2)
		if err := apply(t, s, "web", 0, lrp.CreateMissing{}); err != nil {
			t.Fatal(err)
		}
		r, _ := s.Recall("web", 0)
		slot := &r.Slot.Records[0]
		after := *slot
		after.ModificationTag = slot.ModificationTag.Next()
		b := storage.Batch{
			ActualLRPs: []lrp.Write{{Before: slot, After: &after}}, Origin: r.Origin,
			Events: []storage.Event{{LRP: &lrp.Event{Kind: lrp.InstanceChanged, Before: slot, After: &after}}},
		}
		group := items(t, s, creation(unclaimed("web", 0)), b)
		s.commitGroup(group)
		for _, it := range group {
			<-it.Finished()
		}
		if group[0].err != nil || !errors.Is(group[1].err, storage.ErrConflict) {
			t.Errorf("%v, then %v; want success, then a conflict", group[0].err, group[1].err)
		}
	})
}

// After it has forgotten everything, a store knows no more where the log ends
// until it has committed.
func TestWhatWasReadBeforeTheEndOfTheLogIsKnownIsNoOrigin(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s, other := eagerly(t, dsn, Options{}), mustOpen(t, dsn, Options{})
		desire(t, s, "web", 2)
		if err := apply(t, s, "web", 0, lrp.CreateMissing{}); err != nil {
			t.Fatal(err)
		}
		r, _ := s.Recall("web", 0)
		s.memory.Forget() // as after a commit in doubt
		truth(t, s, "web", 0)
		if again, ok := s.Recall("web", 0); ok {
			r = again
		}
		if _, err := other.Commit(t.Context(), creation(unclaimed("web", 0))); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Commit(t.Context(), claim(t, r)); !errors.Is(err, storage.ErrConflict) {
			t.Errorf("%v, want a conflict", err)
		}
	})
}

// forgetSlot makes the store forget a slot and its deployment, if it remembers both.
func forgetSlot(s *Store, guid string, index int) {
	if r, ok := s.Recall(guid, index); ok {
		s.memory.Doubt(r.Origin.(*memory.Origin))
	}
}

// beingRead is how many slots and deployments are being read for the memory.
func beingRead(s *Store) int {
	_, reading := s.memory.Sizes()
	return reading
}

func TestASlotThatCannotBeIsNotTakenForTheDeployment(t *testing.T) {
	s := mustOpen(t, ":memory:", Options{})
	desire(t, s, "web", 1)
	truth(t, s, "web", 0)
	forgetSlot(s, "web", 0) // as if others had needed the room
	if _, d := truth(t, s, "web", -1); d == nil {
		t.Error("the deployment is not read with a slot that cannot be")
	}
	_, d := truth(t, s, "web", 0)
	if r, ok := s.Recall("web", 0); !ok || !storagetest.Equal(r.Deployment, d) {
		t.Errorf("recalled %v %+v, want %+v", ok, r.Deployment, d)
	}
}

// A caller that has left does not look at what is still being read for it.
func TestAReadThatItsCallerHasLeftIsNotRemembered(t *testing.T) {
	s := mustOpen(t, ":memory:", Options{})
	desire(t, s, "web", 1)
	ctx, cancel := context.WithCancel(t.Context())
	s.slots.Run = func(reads []*slotRead) { // never done
		cancel()
		reads[0].records = []lrp.ActualLRP{*unclaimed("web", 0)}
	}
	if _, _, err := s.Slot(ctx, "web", 0); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context has ended", err)
	}
	if _, ok := s.Recall("web", 0); ok || beingRead(s) != 0 {
		t.Errorf("recalled %v, and %d reads are noted", ok, beingRead(s))
	}
}

func TestEventsAloneAreNotCommittedFromAnOldMemory(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s, other := eagerly(t, dsn, Options{}), mustOpen(t, dsn, Options{})
		desire(t, s, "web", 1)
		if err := apply(t, s, "web", 0, lrp.CreateMissing{}); err != nil {
			t.Fatal(err)
		}
		r, _ := s.Recall("web", 0)
		if _, err := other.Commit(t.Context(), creation(unclaimed("x", 0))); err != nil {
			t.Fatal(err)
		}
		b := claim(t, r)
		b.ActualLRPs = nil
		if _, err := s.Commit(t.Context(), b); !errors.Is(err, storage.ErrConflict) {
			t.Errorf("%v, want a conflict", err)
		}
	})
}

// The batch need not have anything to do with the record.
func TestARecordThatChangesInTheSameGroupMakesTheMemoryOfTheSlotOld(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		desire(t, s, "web", 2)
		if err := apply(t, s, "web", 0, lrp.CreateMissing{}); err != nil {
			t.Fatal(err)
		}
		r, _ := s.Recall("web", 0)
		first := claim(t, r)
		first.Origin = nil
		second := creation(unclaimed("x", 0))
		second.Origin = r.Origin
		group := items(t, s, first, second)
		s.commitGroup(group)
		for _, it := range group {
			<-it.Finished()
		}
		if group[0].err != nil || !errors.Is(group[1].err, storage.ErrConflict) {
			t.Errorf("%v, then %v; want success, then a conflict", group[0].err, group[1].err)
		}
	})
}

func TestAnOriginOfAnotherStoreIsAConflict(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s, other := mustOpen(t, dsn, Options{}), mustOpen(t, dsn, Options{Prefix: newPrefix()})
		for _, store := range []*Store{s, other} {
			desire(t, store, "web", 1)
			if err := apply(t, store, "web", 0, lrp.CreateMissing{}); err != nil {
				t.Fatal(err)
			}
		}
		r, _ := other.Recall("web", 0)
		for _, from := range []any{r.Origin, "elsewhere"} {
			b := creation(unclaimed("x", 0))
			b.Origin = from
			if _, err := s.Commit(t.Context(), b); !errors.Is(err, storage.ErrConflict) {
				t.Errorf("%v: %v, want a conflict", from, err)
			}
		}
		truth(t, s, "web", 0) // which remembers it again
		r, ok := s.Recall("web", 0)
		if !ok {
			t.Fatal("not recalled")
		}
		tx, err := s.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback()
		b := creation(unclaimed("x", 0))
		b.Origin = r.Origin
		if _, err := s.WithTx(tx).Commit(t.Context(), b); !errors.Is(err, storage.ErrConflict) {
			t.Errorf("in a transaction: %v, want a conflict", err)
		}
	})
}

func TestWhatWasReadWhileItWasWrittenIsNotRemembered(t *testing.T) {
	s := mustOpen(t, ":memory:", Options{})
	desire(t, s, "web", 1)
	key := memory.SlotKey{GUID: "web", Index: 0}
	read := func(between func()) bool {
		forgetSlot(s, "web", 0)
		s.memory.Begin(key)
		slot, d := lrp.Slot{}, (*lrp.Deployment)(nil)
		if err := s.View(t.Context(), func(r storage.Reader) (err error) {
			slot, d, err = r.Slot(t.Context(), "web", 0)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		between()
		s.memory.End(key, slot.Records, d, nil)
		_, ok := s.Recall("web", 0)
		return ok
	}
	if !read(func() {}) {
		t.Error("a read that nothing disturbed is not remembered")
	}
	commit := func(b storage.Batch) {
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if read(func() { commit(creation(unclaimed("web", 0))) }) {
		t.Error("a slot is remembered that has changed since it was read")
	}
	if !read(func() { commit(creation(unclaimed("other", 0))) }) {
		t.Error("a read is not remembered since another slot was written")
	}
	if read(s.memory.Forget) {
		t.Error("a slot is remembered that was read before everything was forgotten")
	}
	if read(func() {}) {
		t.Error("a slot is remembered, and where the log ended is not")
	}
	if n := beingRead(s); n != 0 {
		t.Errorf("%d reads are noted that are over", n)
	}
}

func TestAMemoryKeepsNoMoreThanItMay(t *testing.T) {
	for _, limit := range []int{-1, 1, 10} {
		s := mustOpen(t, ":memory:", Options{Remember: limit})
		desire(t, s, "web", 100)
		for i := range 100 {
			if err := apply(t, s, "web", i, lrp.CreateMissing{}); err != nil {
				t.Fatal(err)
			}
		}
		if n, _ := s.memory.Sizes(); n > max(limit, 0) || limit > 0 && n < limit {
			t.Errorf("%d are remembered, want %d", n, limit)
		}
	}
}

// What is remembered while many commit is what the database has in the end.
func TestTheMemoryIsRightAfterManyHaveCommittedAtOnce(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		stores := []*Store{eagerly(t, dsn, Options{}), eagerly(t, dsn, Options{})}
		desire(t, stores[0], "web", 4)
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				s := stores[n/6] // most are the first store's
				for round := range 10 {
					me := lrp.InstanceKey{InstanceGUID: fmt.Sprint("i", n, "-", round), CellID: fmt.Sprint("c", n)}
					for _, c := range []lrp.Command{lrp.CreateMissing{}, lrp.Claim{Instance: me}, lrp.Start{Instance: me}, lrp.Remove{Instance: me}} {
						if err := apply(t, s, "web", round%4, c); err != nil && !isRefusal(err) {
							t.Error(err)
						}
					}
				}
			})
		}
		wg.Wait()
		for _, s := range stores {
			if err := apply(t, s, "web", 3, lrp.CreateMissing{}); err != nil { // it learns of the others' commits, if there are new ones
				t.Error(err)
			}
			if _, err := s.Commit(t.Context(), creation(unclaimed("last", int(prefixes.Add(1))))); err != nil {
				t.Error(err)
			}
			for index := range 4 {
				if r, ok := s.Recall("web", index); ok {
					if slot, d := truth(t, s, "web", index); !storagetest.Equal(r.Slot, slot) || !reflect.DeepEqual(r.Deployment, d) {
						t.Errorf("%d: recalled %+v\nbut it is %+v", index, r.Slot, slot)
					}
				}
			}
		}
	})
}

// isRefusal reports whether a step was refused by the slot, not by the store.
func isRefusal(err error) bool {
	var transition *lrp.TransitionError
	return errors.As(err, &transition)
}

func TestAMemoryThatSomebodyMadeWrongBehindTheStoresBackIsDroppedWhenItIsFoundOut(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		desire(t, s, "web", 1)
		if err := apply(t, s, "web", 0, lrp.CreateMissing{}); err != nil {
			t.Fatal(err)
		}
		exec(t, s, "DELETE FROM "+s.table("actual_lrps"))
		claim := lrp.Claim{Instance: lrp.InstanceKey{InstanceGUID: "i", CellID: "c"}}
		if err := apply(t, s, "web", 0, claim); !errors.Is(err, lrp.ErrNotFound) {
			t.Errorf("%v, want that there is none", err)
		}
		if r, ok := s.Recall("web", 0); !ok || len(r.Slot.Records) != 0 {
			t.Errorf("recalled %v %+v, want an empty slot", ok, r.Slot)
		}
	})
}

// Instances of one process share what is remembered of it, so a step that is
// refused must not make those of all others fail, who would do the same to it.
func TestWhatOneStepFindsOutOfTheMemoryIsNoOthersConcern(t *testing.T) {
	for name, upset := range map[string]func(*testing.T, *Store){
		"a refusal for its own slot": func(t *testing.T, s *Store) {
			r, _ := s.Recall("web", 0)
			for range 2 { // the second one is decided from an old slot
				_, err := s.Commit(t.Context(), claim(t, r))
				if err != nil && !errors.Is(err, storage.ErrConflict) {
					t.Fatal(err)
				}
			}
		},
		"a process that was forgotten and read again": func(t *testing.T, s *Store) {
			forgetSlot(s, "web", 0)
			truth(t, s, "web", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, ":memory:", Options{})
			desire(t, s, "web", 2)
			for index := range 2 {
				if err := apply(t, s, "web", index, lrp.CreateMissing{}); err != nil {
					t.Fatal(err)
				}
			}
			other, ok := s.Recall("web", 1)
			if !ok {
				t.Fatal("not recalled")
			}
			upset(t, s)
			if _, err := s.Commit(t.Context(), claim(t, other)); err != nil {
				t.Errorf("a step of another instance: %v", err)
			}
		})
	}
}
