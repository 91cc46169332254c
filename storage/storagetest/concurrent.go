package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// RunConcurrent checks the contract as several callers see it at once. It is
// best run with -race.
func RunConcurrent(t *testing.T, open Open) {
	for _, c := range concurrentCases {
		t.Run(c.sentence, func(t *testing.T) { c.check(newFixture(t, open, c.options)) })
	}
}

const callers = 8

// patient are options of callers that are many.
var patient = &storage.Options{Attempts: 300, MaxWait: 20 * time.Millisecond}

// together calls do from several goroutines at once, and waits for them.
func (f *fixture) together(n int, do func(caller int) error) {
	f.Helper()
	var group sync.WaitGroup
	start := make(chan struct{})
	errs := make([]error, n)
	for caller := range n {
		group.Go(func() {
			<-start
			errs[caller] = do(caller)
		})
	}
	close(start)
	group.Wait()
	f.must(errors.Join(errs...))
}

var concurrentCases = []testCase{
	{sentence: "who has seen an event has seen all before it, and every View is what the events up to it tell", check: checkFollowers},
	{sentence: "of several creations of one record one succeeds and the others are ErrExists", check: func(f *fixture) {
		for round := range 30 {
			var won atomic.Int32
			f.together(callers, func(caller int) error {
				r := unclaimed("p", round)
				r.CrashCount = caller
				b := lrpWrite(nil, r)
				b.Events = []storage.Event{created(r)}
				_, err := f.Store.Commit(f.ctx, b)
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, storage.ErrExists):
					return err
				}
				return nil
			})
			f.same("winners", won.Load(), int32(1))
		}
		f.same("events of winners", len(f.events(0, storage.EventFilter{})), 30)
	}},
	{sentence: "of several writes that have read the same tag one succeeds and the others conflict", check: func(f *fixture) {
		r := unclaimed("p", 0)
		f.createAll(r)
		for range 30 {
			var won atomic.Pointer[lrp.ActualLRP]
			f.together(callers, func(caller int) error {
				after := next(r, func(r *lrp.ActualLRP) { r.CrashCount = caller })
				_, err := f.Store.Commit(f.ctx, lrpWrite(r, after))
				switch {
				case err == nil && !won.CompareAndSwap(nil, after):
					return errors.New("a second writer succeeded")
				case err != nil && !errors.Is(err, storage.ErrConflict):
					return err
				}
				return nil
			})
			r = won.Load()
			f.same("record", f.lrps(storage.ActualLRPFilter{}), []lrp.ActualLRP{*r})
		}
	}},
	{sentence: "batches that write the same records in different orders all come to an end", check: func(f *fixture) {
		const records = 6
		for i := range records {
			f.createAll(unclaimed("p", i))
		}
		f.together(callers, func(caller int) error {
			rng := rand.New(rand.NewPCG(uint64(caller), 0))
			for range 15 {
				_, err := storage.Apply(f.ctx, f.Store, patient, func(ctx context.Context, r storage.Reader) (b storage.Batch, err error) {
					for _, i := range rng.Perm(records)[:4] {
						slot, _, err := r.Slot(ctx, "p", i)
						if err != nil {
							return b, err
						}
						old := &slot.Records[0]
						b.ActualLRPs = append(b.ActualLRPs, lrp.Write{Before: old, After: next(old, func(r *lrp.ActualLRP) { r.CrashCount++ })})
					}
					return b, nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		sum := 0
		for _, r := range f.lrps(storage.ActualLRPFilter{}) {
			sum += r.CrashCount
		}
		f.same("writes", sum, callers*15*4)
	}},
	{sentence: "Apply loses no change", check: func(f *fixture) {
		f.createAll(unclaimed("p", 0))
		const each = 15
		f.together(callers, func(int) error {
			for range each {
				_, _, err := storage.ApplySlot(f.ctx, f.Store, "p", 0, patient, func(s lrp.Slot, _ *lrp.Deployment) (lrp.Decision, error) {
					before := &s.Records[0]
					return lrp.Decision{Writes: []lrp.Write{{Before: before, After: next(before, func(r *lrp.ActualLRP) { r.CrashCount++ })}}}, nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		f.same("crash count", f.lrps(storage.ActualLRPFilter{})[0].CrashCount, callers*each)
	}},
	{sentence: "a record is not created against a check that a commit at the same time breaks", check: func(f *fixture) {
		for round := range 20 {
			guid := fmt.Sprintf("p%02d", round)
			d := deployment(guid)
			f.commit(deploymentWrite(nil, d))
			f.together(2, func(caller int) error {
				b := deploymentWrite(d, nil)
				if caller == 0 {
					b = deploymentWrite(storage.Bare(d), storage.Bare(d))
					b.ActualLRPs = []lrp.Write{{After: unclaimed(guid, 0)}}
					b.Events = []storage.Event{created(unclaimed(guid, 0))}
				} else {
					b.Events = []storage.Event{{LRP: &lrp.Event{Kind: lrp.DeploymentRemoved, DeploymentBefore: d}}}
				}
				_, err := f.Store.Commit(f.ctx, b)
				if err != nil && !(caller == 0 && errors.Is(err, storage.ErrConflict)) {
					return err
				}
				return nil
			})
			// The record was created before the deployment went, or not at all.
			events := f.events(0, storage.EventFilter{ProcessGUIDs: []string{guid}})
			if last := events[len(events)-1]; last.LRP.Kind != lrp.DeploymentRemoved {
				f.Fatalf("the last event of %s is %v", guid, last.LRP.Kind)
			}
			f.same("records", len(f.lrps(storage.ActualLRPFilter{ProcessGUIDs: []string{guid}})), len(events)-1)
		}
	}},
	{sentence: "a request that is committed several times at once is committed once", check: func(f *fixture) {
		for round := range 20 {
			var won atomic.Int32
			f.together(callers, func(int) error {
				_, err := f.Store.Commit(f.ctx, storage.Batch{
					RequestID: fmt.Sprint("request ", round),
					Events:    []storage.Event{created(unclaimed("p", round))},
				})
				switch {
				case err == nil:
					won.Add(1)
				case !errors.Is(err, storage.ErrDuplicate):
					return err
				}
				return nil
			})
			f.same("winners", won.Load(), int32(1))
		}
		f.same("events", f.log().Newest, storage.Cursor(20))
	}},
	{sentence: "a free lease goes to one of those who want it, and no epoch is given twice", check: func(f *fixture) {
		var mu sync.Mutex
		epochs := map[int64]bool{}
		for range 20 {
			var won atomic.Pointer[storage.Lease]
			f.together(callers, func(caller int) error {
				l, err := f.Store.Acquire(f.ctx, storage.Lease{Kind: "kind", Name: "n", Owner: fmt.Sprint(caller)}, time.Hour)
				switch {
				case errors.Is(err, storage.ErrHeld):
					return nil
				case err != nil:
					return err
				case !won.CompareAndSwap(nil, &l):
					return fmt.Errorf("both %+v and %+v hold the lease", l, *won.Load())
				}
				mu.Lock()
				defer mu.Unlock()
				if epochs[l.Epoch] {
					return fmt.Errorf("epoch %d was given twice", l.Epoch)
				}
				epochs[l.Epoch] = true
				return nil
			})
			if won.Load() == nil {
				f.Fatal("nobody got the free lease")
			}
			f.must(f.Store.Release(f.ctx, *won.Load()))
		}
	}},
	{sentence: "nothing that a holder commits comes after it was replaced", check: func(f *fixture) {
		owner := storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: "o"}
		lease, err := f.Store.Acquire(f.ctx, owner, time.Hour)
		f.must(err)
		for range 15 {
			old := lease
			first, replaced := make(chan struct{}), make(chan struct{})
			done := make(chan error, 1)
			var last storage.Cursor
			go func() {
				for n := 0; ; n++ {
					late := false
					select {
					case <-replaced:
						late = true
					default:
					}
					cursor, err := f.Store.Commit(f.ctx, storage.Batch{Fence: old.Fence(), Events: []storage.Event{created(unclaimed("old", n))}})
					if n == 0 {
						close(first)
					}
					if err != nil || late {
						done <- err
						return
					}
					last = cursor
				}
			}()
			<-first
			lease, err = f.Store.Acquire(f.ctx, owner, time.Hour)
			f.must(err)
			mark := f.commit(storage.Batch{Fence: lease.Fence(), Events: []storage.Event{created(unclaimed("new", 0))}})
			close(replaced)
			if err := <-done; !errors.Is(err, storage.ErrFenced) {
				f.Fatalf("the old holder ends with %v, want ErrFenced", err)
			}
			if last > mark {
				f.Fatalf("the old holder has committed event %d, the new one %d before", last, mark)
			}
		}
	}},
	{sentence: "a caller whose context ends does not take others with it", check: func(f *fixture) {
		var ended, committed atomic.Int32
		f.together(callers, func(caller int) error {
			for n := range 60 {
				ctx, cancel := context.WithCancel(f.ctx)
				b := lrpWrite(nil, unclaimed(fmt.Sprint(caller), n))
				if caller%2 == 0 {
					go cancel()
				}
				_, err := f.Store.Commit(ctx, b)
				cancel()
				switch {
				case err == nil:
					committed.Add(1)
				case caller%2 == 0 && errors.Is(err, context.Canceled):
					ended.Add(1)
				default:
					return fmt.Errorf("caller %d: %w", caller, err)
				}
			}
			return nil
		})
		// A caller whose context ended does not know whether its batch was
		// committed.
		n := int32(len(f.lrps(storage.ActualLRPFilter{})))
		if n < committed.Load() || n > committed.Load()+ended.Load() {
			f.Errorf("%d records, %d commits succeeded and %d ended", n, committed.Load(), ended.Load())
		}
	}},
}

// checkFollowers lets several callers do random things while one follows the
// events and others look at the whole.
func checkFollowers(f *fixture) {
	const writers, each = 4, 80
	var clock atomic.Int64
	clock.Store(begin.UnixNano())
	now := func() time.Time { return time.Unix(0, clock.Add(int64(time.Millisecond))).UTC() }
	ctx, stop := context.WithCancel(f.ctx)
	defer stop()

	var watchers sync.WaitGroup
	watched := make(chan error, 3)
	watch := func(fold *fold, look func(*fold) error) {
		watchers.Go(func() {
			for ctx.Err() == nil {
				if err := look(fold); err != nil {
					watched <- err
					return
				}
			}
		})
	}
	follower := newFold()
	watch(follower, func(fold *fold) error {
		if err := storage.Wait(ctx, f.Store, fold.at, time.Millisecond); err != nil {
			return nil // the end
		}
		return fold.catchUp(f.ctx, f.Store)
	})
	for range 2 {
		watch(newFold(), func(fold *fold) error {
			return f.Store.View(f.ctx, func(r storage.Reader) error { return fold.compare(f.ctx, r) })
		})
	}

	f.together(writers, func(caller int) error {
		w := &world{rng: rand.New(rand.NewPCG(uint64(caller), 7)), now: now, options: patient}
		for range each {
			op := w.operation()
			if err := op.do(f.ctx, f.Store); err != nil && !refusal(err) {
				return fmt.Errorf("%s: %w", op.name, err)
			}
		}
		return nil
	})
	stop()
	watchers.Wait()
	close(watched)
	for err := range watched {
		f.Error(err)
	}
	f.must(follower.catchUp(f.ctx, f.Store))
	f.must(f.Store.View(f.ctx, func(r storage.Reader) error { return follower.compare(f.ctx, r) }))
	if f.log().Newest < writers*each/4 {
		f.Fatalf("only %d events were made: that proves little", f.log().Newest)
	}
}
