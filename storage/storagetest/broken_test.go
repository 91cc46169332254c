package storagetest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/storage/storagetest"
	"github.com/diegosdk/diego/task"
)

// A suite that no store fails proves nothing. Each of these stores breaks one
// sentence of the contract, and the suite must say which.
var brokenStores = []struct {
	name string
	// sentence is part of the name of a case that must fail.
	sentence string
	wrap     func(*memstore.Store) storage.Store
}{
	{"folds case", "identifiers are compared", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, task: func(ctx context.Context, guid string) string { return strings.ToLower(guid) }}
	}},
	{"lists backwards", "ordered by process guid, index", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, list: func(list []lrp.ActualLRP) []lrp.ActualLRP {
			for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
				list[i], list[j] = list[j], list[i]
			}
			return list
		}}
	}},
	{"forgets a filter", "every field of a filter", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, filter: func(f *storage.ActualLRPFilter) { f.Presences = nil }}
	}},
	{"keeps microseconds", "the one that was committed, in every state", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, list: func(list []lrp.ActualLRP) []lrp.ActualLRP {
			for i := range list {
				list[i].Since = list[i].Since.Truncate(time.Microsecond)
			}
			return list
		}}
	}},
	{"commits by halves", "completely or not at all", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, commit: func(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
			if len(b.ActualLRPs) > 1 {
				first := b
				first.ActualLRPs, first.RequestID, first.Fence = b.ActualLRPs[:1], "", storage.Fence{}
				first.Deployments, first.Tasks, first.Domains, first.Quarantine, first.Events = nil, nil, nil, nil, nil
				if _, err := s.Commit(ctx, first); err != nil {
					return 0, err
				}
				b.ActualLRPs = b.ActualLRPs[1:]
			}
			return s.Commit(ctx, b)
		}}
	}},
	{"ignores tags", "names another tag", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, commit: func(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
			for i, w := range b.Tasks {
				if w.Before != nil {
					if have, err := s.Task(ctx, w.Before.GUID); err == nil {
						b.Tasks[i].Before = have
					}
				}
			}
			return s.Commit(ctx, b)
		}}
	}},
	{"ignores checks", "a check changes nothing", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, commit: func(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
			var writes []storage.DeploymentWrite
			for _, w := range b.Deployments {
				if !w.IsCheck() {
					writes = append(writes, w)
				}
			}
			b.Deployments = writes
			return s.Commit(ctx, b)
		}}
	}},
	{"ignores fences", "goes on unless it was replaced", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, commit: func(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
			b.Fence = storage.Fence{}
			return s.Commit(ctx, b)
		}}
	}},
	{"forgets requests", "same request id is a duplicate", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, commit: func(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
			b.RequestID = ""
			return s.Commit(ctx, b)
		}}
	}},
	{"forgets requests after two minutes, when it writes", "remembered for an hour", func(s *memstore.Store) storage.Store {
		return &forgetful{Store: s, at: map[string]time.Time{}, forgotten: map[string]int{}}
	}},
	{"lets the clock of a View go on", "in a View the clock stands still", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, view: func(ctx context.Context, f func(storage.Reader) error) error {
			return s.View(ctx, func(r storage.Reader) error { return f(restless{Reader: r, clock: s, now: true}) })
		}}
	}},
	{"lets leases expire in a View", "in a View the clock stands still", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, view: func(ctx context.Context, f func(storage.Reader) error) error {
			return s.View(ctx, func(r storage.Reader) error { return f(restless{Reader: r, clock: s}) })
		}}
	}},
	{"keeps events of any size", "as far as their bytes allow", func(s *memstore.Store) storage.Store {
		unbounded := memstore.New(nil)
		return &wrapped{Store: unbounded}
	}},
	{"loses the last event of a batch", "numbered consecutively", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, commit: func(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
			if n := len(b.Events); n > 2 {
				b.Events = b.Events[:n-1]
			}
			return s.Commit(ctx, b)
		}}
	}},
	{"shows a View what is newest", "a View sees one moment", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, view: func(ctx context.Context, f func(storage.Reader) error) error { return f(s) }}
	}},
	{"lets a View's Reader live on", "its Reader ends with it", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, view: func(ctx context.Context, f func(storage.Reader) error) error { return f(s) }}
	}},
	{"uses numbers again after a restore", "no number comes twice", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, restored: func(context.Context) error { return nil }}
	}},
	{"grants lost epochs again after a restore", "no epoch is granted twice", func(s *memstore.Store) storage.Store {
		afterwards := map[string]int64{}
		return &wrapped{Store: s, acquire: func(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
			got, err := s.Acquire(ctx, l, ttl)
			if got.Epoch > 1e9 {
				afterwards[l.Name]++
				got.Epoch = afterwards[l.Name]
			}
			return got, err
		}}
	}},
	{"tells nobody of lost events", "a reader that has seen lost events is told so", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, events: func(list iter.Seq2[storage.Event, error]) iter.Seq2[storage.Event, error] {
			return func(yield func(storage.Event, error) bool) {
				for e, err := range list {
					var gone *storage.GoneError
					if errors.As(err, &gone) && gone.Gap != nil {
						s.Events(context.Background(), gone.Gap.First-1, storage.EventFilter{})(yield)
						return
					}
					if !yield(e, err) {
						return
					}
				}
			}
		}}
	}},
	{"gives leases to anyone", "that another owner holds", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, acquire: func(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
			got, err := s.Acquire(ctx, l, ttl)
			var held *storage.HeldError
			if errors.As(err, &held) {
				return held.Lease, nil
			}
			return got, err
		}}
	}},
	{"forgets epochs", "never used again, not even after KeepFor", func(s *memstore.Store) storage.Store {
		start, _ := s.Now(context.Background())
		return &wrapped{Store: s, acquire: func(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
			got, err := s.Acquire(ctx, l, ttl)
			if now, _ := s.Now(ctx); now.Sub(start) > storage.KeepFor {
				got.Epoch = 1
			}
			return got, err
		}}
	}},
	{"hides what cannot be decoded", "comes in its place in the order", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, list: func(list []lrp.ActualLRP) []lrp.ActualLRP { return list }}
	}},
	{"ignores contexts", "with a context that has ended", func(s *memstore.Store) storage.Store {
		return &wrapped{Store: s, commit: func(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
			return s.Commit(context.WithoutCancel(ctx), b)
		}}
	}},
}

// These break it only for callers that are several.
var brokenTogether = []struct {
	name, sentence string
	wrap           func(*memstore.Store) storage.Store
}{
	{"compares before it commits", "same tag one succeeds", func(s *memstore.Store) storage.Store {
		var compared atomic.Int32
		var one sync.Mutex
		second := make(chan struct{})
		return &wrapped{Store: s, commit: func(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
			for i, w := range b.ActualLRPs {
				if w.Before == nil {
					continue
				}
				have, _, err := s.Slot(ctx, w.Before.ProcessGUID, w.Before.Index)
				if err != nil || len(have.Records) == 0 || have.Records[0].ModificationTag != w.Before.ModificationTag {
					return 0, &storage.ConflictError{Key: storage.ActualLRPKey(w.Before), Err: storage.ErrConflict}
				}
				switch compared.Add(1) { // the first two compare the same tag
				case 1:
					<-second
				case 2:
					close(second)
				}
				one.Lock()
				defer one.Unlock()
				have, _, _ = s.Slot(ctx, w.Before.ProcessGUID, w.Before.Index)
				b.ActualLRPs[i].Before = &have.Records[0]
			}
			return s.Commit(ctx, b)
		}}
	}},
	{"makes events visible out of order", "has seen all before it", func(s *memstore.Store) storage.Store {
		var n atomic.Int64
		return &wrapped{Store: s, events: func(list iter.Seq2[storage.Event, error]) iter.Seq2[storage.Event, error] {
			return func(yield func(storage.Event, error) bool) {
				for e, err := range list {
					if n.Add(1)%11 == 0 {
						continue // not visible yet
					}
					if !yield(e, err) {
						return
					}
				}
			}
		}}
	}},
	{"checks fences before it commits", "after it was replaced", func(s *memstore.Store) storage.Store {
		// The first holder is slow: it is replaced between the check and the
		// commit of its second batch.
		var commits, acquired atomic.Int32
		checked, replaced := make(chan struct{}), make(chan struct{})
		closeReplaced := sync.OnceFunc(func() { close(replaced) })
		return &wrapped{Store: s, acquire: func(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
			if acquired.Add(1) == 2 {
				<-checked
			}
			return s.Acquire(ctx, l, ttl)
		}, commit: func(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
			if _, err := s.Commit(ctx, storage.Batch{Fence: b.Fence}); err != nil {
				return 0, err
			}
			if b.Fence.Epoch > 1 {
				defer closeReplaced()
			} else if commits.Add(1) == 2 {
				close(checked)
				<-replaced
			}
			b.Fence = storage.Fence{}
			return s.Commit(ctx, b)
		}}
	}},
}

// brokenStore is the environment variable that names the store to test in a
// child process.
const brokenStore = "DIEGO_STORAGETEST_BROKEN"

func TestTheSuiteFindsWhatIsBroken(t *testing.T) {
	// In the child only the case runs that should fail; path leads from the
	// store's name to it.
	run := func(t *testing.T, name, path, sentence string, suite func(*testing.T, storagetest.Open), wrap func(*memstore.Store) storage.Store) {
		switch os.Getenv(brokenStore) {
		case name:
			suite(t, func(_ testing.TB, o storagetest.Options) storagetest.Harness { return openMemory(o, wrap) })
			return
		case "":
		default:
			return
		}
		sentence = strings.ReplaceAll(sentence, " ", "_")
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$"+path+sentence, "-test.count=1")
		child.Env = append(os.Environ(), brokenStore+"="+name)
		output, err := child.CombinedOutput()
		if err == nil {
			t.Fatalf("the suite does not find that %q is broken", sentence)
		}
		for line := range strings.Lines(string(output)) {
			if strings.Contains(line, "--- FAIL") && strings.Contains(line, sentence) {
				return
			}
		}
		t.Errorf("the suite fails before it finds that %q is broken:\n%s", sentence, output)
	}
	for _, b := range brokenStores {
		t.Run(b.name, func(t *testing.T) { run(t, b.name, "/.*/", b.sentence, storagetest.Run, b.wrap) })
	}
	for _, b := range brokenTogether {
		t.Run(b.name, func(t *testing.T) { run(t, b.name, "/", b.sentence, storagetest.RunConcurrent, b.wrap) })
	}
}

func TestARandomFailureIsReducedToTheOperationsThatMatter(t *testing.T) {
	if os.Getenv(brokenStore) == "" {
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		child.Env = append(os.Environ(), brokenStore+"=forgetful")
		output, err := child.CombinedOutput()
		_, reduced, _ := strings.Cut(string(output), "reduced to ")
		n, rest, _ := strings.Cut(reduced, " ")
		if operations, _ := strconv.Atoi(n); err == nil || operations < 1 || operations > 5 || !strings.Contains(rest, "memstore says:") {
			t.Fatalf("%v, and the child says:\n%s", err, output)
		}
		return
	}
	storagetest.RunMetamorphic(t, func(testing.TB, storagetest.Options) storagetest.Harness {
		s := memstore.New(nil)
		return storagetest.Harness{Store: &wrapped{Store: s, commit: func(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
			b.RequestID = ""
			return s.Commit(ctx, b)
		}}}
	}, 1, 1000)
}

func TestTheSuiteFindsAStoreThatAcknowledgesTooEarly(t *testing.T) {
	if os.Getenv(brokenStore) == "" && os.Getenv("DIEGO_STORAGETEST_CRASH_DIR") == "" {
		child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.count=1")
		child.Env = append(os.Environ(), brokenStore+"=late")
		output, err := child.CombinedOutput()
		if err == nil || !strings.Contains(string(output), "was acknowledged as event") {
			t.Fatalf("the suite does not find the commits that are lost: %v\n%s", err, output)
		}
		return
	}
	storagetest.RunCrash(t, storagetest.Crash{Rounds: 10, Seed: 1, Open: openLateJournal})
}

// wrapped is a store with some of its methods replaced.
type wrapped struct {
	*memstore.Store
	task    func(context.Context, string) string
	filter  func(*storage.ActualLRPFilter)
	list    func([]lrp.ActualLRP) []lrp.ActualLRP
	events  func(iter.Seq2[storage.Event, error]) iter.Seq2[storage.Event, error]
	commit  func(context.Context, storage.Batch) (storage.Cursor, error)
	view    func(context.Context, func(storage.Reader) error) error
	acquire func(context.Context, storage.Lease, time.Duration) (storage.Lease, error)
	// restored runs instead of Restored.
	restored func(context.Context) error
}

func (w *wrapped) Restored(ctx context.Context) error {
	if w.restored == nil {
		return w.Store.Restored(ctx)
	}
	return w.restored(ctx)
}

func (w *wrapped) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	if w.commit == nil {
		return w.Store.Commit(ctx, b)
	}
	if err := b.Check(); err != nil {
		return 0, err
	}
	return w.commit(ctx, b)
}

func (w *wrapped) View(ctx context.Context, f func(storage.Reader) error) error {
	if w.view == nil {
		return w.Store.View(ctx, f)
	}
	return w.view(ctx, f)
}

func (w *wrapped) Acquire(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	if w.acquire == nil {
		return w.Store.Acquire(ctx, l, ttl)
	}
	return w.acquire(ctx, l, ttl)
}

func (w *wrapped) Task(ctx context.Context, guid string) (*task.Task, error) {
	if w.task != nil {
		guid = w.task(ctx, guid)
	}
	return w.Store.Task(ctx, guid)
}

func (w *wrapped) Events(ctx context.Context, after storage.Cursor, f storage.EventFilter) iter.Seq2[storage.Event, error] {
	list := w.Store.Events(ctx, after, f)
	if w.events == nil {
		return list
	}
	return w.events(list)
}

func (w *wrapped) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	if w.filter != nil {
		w.filter(&f)
	}
	if w.list == nil {
		return w.Store.ActualLRPs(ctx, f)
	}
	var all []lrp.ActualLRP
	for r, err := range w.Store.ActualLRPs(ctx, f) {
		if err == nil {
			all = append(all, r)
		}
	}
	return func(yield func(lrp.ActualLRP, error) bool) {
		for _, r := range w.list(all) {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// A forgetful store forgets request ids each time that it has written something.
type forgetful struct {
	*memstore.Store
	at map[string]time.Time
	// forgotten is how often an id was.
	forgotten map[string]int
}

func (s *forgetful) known(id string) string { return fmt.Sprint(id, " ", s.forgotten[id]) }

func (s *forgetful) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	id := b.RequestID
	if b.Check() == nil && id != "" {
		b.RequestID = s.known(id)
	}
	cursor, err := s.Store.Commit(ctx, b)
	if err != nil || id == "" {
		return cursor, err
	}
	now, err := s.Now(ctx)
	for other, at := range s.at {
		if now.Sub(at) > 2*time.Minute {
			s.forgotten[other]++
			delete(s.at, other)
		}
	}
	s.at[id] = now
	return cursor, err
}

func (s *forgetful) Remembers(ctx context.Context, id string) (bool, error) {
	return s.Store.Remembers(ctx, s.known(id))
}

// A restless Reader of a View looks at the clock again: for Now, or else for
// leases.
type restless struct {
	storage.Reader
	clock *memstore.Store
	now   bool
}

func (r restless) Now(ctx context.Context) (time.Time, error) {
	if r.now {
		return r.clock.Now(ctx)
	}
	return r.Reader.Now(ctx)
}

func (r restless) Leases(ctx context.Context, kind string) iter.Seq2[storage.Lease, error] {
	if r.now {
		return r.Reader.Leases(ctx, kind)
	}
	return func(yield func(storage.Lease, error) bool) {
		for l, err := range r.Reader.Leases(ctx, kind) {
			if now, _ := r.clock.Now(ctx); err == nil && !now.Before(l.ExpiresAt) {
				continue
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// openMemory makes a store in memory with a clock that the suite moves, and
// wraps it.
func openMemory(o storagetest.Options, wrap func(*memstore.Store) storage.Store) storagetest.Harness {
	var ahead atomic.Int64
	s := memstore.New(&memstore.Options{Events: o.Events, EventBytes: o.EventBytes, Now: func() time.Time {
		return time.Unix(1_900_000_000, 0).Add(time.Duration(ahead.Load()))
	}})
	wrapped := wrap(s)
	return storagetest.Harness{
		Store:       wrapped,
		BoundsBytes: true,
		Advance:     func(d time.Duration) { ahead.Add(int64(d)) },
		Corrupt:     func(_ testing.TB, key storage.RecordKey) { s.Corrupt(key) },
		Save: func(testing.TB) func(testing.TB) storage.Store {
			fallBack := s.Save()
			return func(t testing.TB) storage.Store {
				fallBack()
				ahead.Add(int64(time.Second)) // nothing is restored in no time
				if err := storage.Restored(context.Background(), wrapped); err != nil {
					t.Fatal(err)
				}
				return wrapped
			}
		},
	}
}

// The suite itself must pass where nothing is broken.
func TestTheSuitePassesAStoreThatIsNotBroken(t *testing.T) {
	open := func(_ testing.TB, o storagetest.Options) storagetest.Harness {
		return openMemory(o, func(s *memstore.Store) storage.Store { return s })
	}
	storagetest.Run(t, open)
	storagetest.RunConcurrent(t, open)
	storagetest.RunMetamorphic(t, open, 1, 500)
}
