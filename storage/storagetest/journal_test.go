package storagetest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
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

// A journal is a small store on disk, and the worked example of
// docs/storage.md. It keeps everything in memory and appends each change to a
// file, which it replays when it is opened. So memstore does the reading, and
// what is left is Commit and the leases.
//
// It survives the death of its process, not that of the machine: for that it
// would call Sync before it returns from append.
type journal struct {
	*memstore.Store
	clock func() time.Time
	// still is the time of the change that is being made, or made again, in
	// nanoseconds, so that it has the same time both times; 0 in between.
	still atomic.Int64

	mu   sync.Mutex // one change at a time, so that the file has their order
	file *os.File
	w    io.Writer // file, but for a journal that is broken on purpose
}

// An entry is one change, as one line of JSON.
type entry struct {
	At time.Time

	// A commit.
	ActualLRPs  []lrp.Write               `json:",omitempty"`
	Deployments []storage.DeploymentWrite `json:",omitempty"`
	Tasks       []task.Write              `json:",omitempty"`
	Domains     []storage.DomainWrite     `json:",omitempty"`
	Events      [][]byte                  `json:",omitempty"`
	RequestID   string                    `json:",omitempty"`

	// Or a gap.
	Restored bool `json:",omitempty"`

	// Or an operation on a lease.
	Acquire, Renew, Release *storage.Lease `json:",omitempty"`
	TTL                     time.Duration  `json:",omitempty"`

	// What counts at the moment of the change only, and is not in the file.
	fence  storage.Fence
	origin any
}

func openJournal(dir string, events int, clock func() time.Time) (*journal, error) {
	file, err := os.OpenFile(filepath.Join(dir, "journal"), os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	j := &journal{clock: clock, file: file, w: file}
	j.Store = memstore.New(&memstore.Options{Events: events, Now: func() time.Time {
		if still := j.still.Load(); still != 0 {
			return time.Unix(0, still)
		}
		return clock()
	}})
	found, err := j.replay()
	if err == nil && found { // it may be a copy, or lack what was written last
		err = j.Restored(context.Background())
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return j, nil
}

// replay makes the changes again that are in the file, and reports whether
// there are any.
func (j *journal) replay() (found bool, err error) {
	data, err := io.ReadAll(j.file)
	if err != nil {
		return false, err
	}
	// What follows the last line is a change that was never acknowledged.
	whole := bytes.LastIndexByte(data, '\n') + 1
	if err := j.file.Truncate(int64(whole)); err != nil {
		return false, err
	}
	for line := range bytes.Lines(data[:whole]) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return false, err
		}
		if _, _, err := j.apply(context.Background(), &e); err != nil {
			return false, err
		}
	}
	return whole > 0, nil
}

// apply makes the change in memory.
func (j *journal) apply(ctx context.Context, e *entry) (storage.Cursor, storage.Lease, error) {
	j.still.Store(e.At.UnixNano())
	defer j.still.Store(0)
	switch {
	case e.Restored:
		return 0, storage.Lease{}, j.Store.Restored(ctx)
	case e.Acquire != nil:
		l, err := j.Store.Acquire(ctx, *e.Acquire, e.TTL)
		return 0, l, err
	case e.Renew != nil:
		l, err := j.Store.Renew(ctx, *e.Renew, e.TTL)
		return 0, l, err
	case e.Release != nil:
		return 0, storage.Lease{}, j.Store.Release(ctx, *e.Release)
	}
	b := storage.Batch{
		ActualLRPs: e.ActualLRPs, Deployments: e.Deployments, Tasks: e.Tasks, Domains: e.Domains,
		RequestID: e.RequestID, Fence: e.fence, Origin: e.origin,
	}
	for _, data := range e.Events {
		event, err := storage.DecodeEvent(data)
		if err != nil {
			return 0, storage.Lease{}, err
		}
		b.Events = append(b.Events, event)
	}
	cursor, err := j.Store.Commit(ctx, b)
	return cursor, storage.Lease{}, err
}

// change makes a change in memory and then in the file.
func (j *journal) change(ctx context.Context, e entry) (storage.Cursor, storage.Lease, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	e.At = j.clock()
	cursor, lease, err := j.apply(ctx, &e)
	if err != nil {
		return 0, storage.Lease{}, err
	}
	data, err := json.Marshal(e)
	if err == nil {
		_, err = j.w.Write(append(data, '\n'))
	}
	return cursor, lease, err
}

func (j *journal) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	if err := b.Check(); err != nil {
		return 0, err
	}
	if len(b.Quarantine) > 0 { // nothing rots in memory, so memstore refuses
		return j.Store.Commit(ctx, b)
	}
	e := entry{
		ActualLRPs: b.ActualLRPs, Deployments: b.Deployments, Tasks: b.Tasks, Domains: b.Domains, RequestID: b.RequestID,
		fence: b.Fence, origin: b.Origin,
	}
	for i := range b.Events {
		data, err := storage.EncodeEvent(&b.Events[i])
		if err != nil {
			return 0, err
		}
		e.Events = append(e.Events, data)
	}
	cursor, _, err := j.change(ctx, e)
	return cursor, err
}

func (j *journal) Acquire(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	_, l, err := j.change(ctx, entry{Acquire: &l, TTL: ttl})
	return l, err
}

func (j *journal) Renew(ctx context.Context, l storage.Lease, ttl time.Duration) (storage.Lease, error) {
	_, l, err := j.change(ctx, entry{Renew: &l, TTL: ttl})
	return l, err
}

func (j *journal) Release(ctx context.Context, l storage.Lease) error {
	_, _, err := j.change(ctx, entry{Release: &l})
	return err
}

// Restored implements storage.Restorer.
func (j *journal) Restored(ctx context.Context) error {
	_, _, err := j.change(ctx, entry{Restored: true})
	return err
}

func (j *journal) Close() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.file == nil {
		return nil
	}
	file := j.file
	j.file = nil
	j.Store.Close()
	return file.Close()
}

// openHarness is all that the suite needs to know of the store.
func openHarness(t testing.TB, o storagetest.Options) storagetest.Harness {
	dir := t.TempDir()
	var ahead atomic.Int64
	clock := func() time.Time { return time.Unix(1_900_000_000, 0).Add(time.Duration(ahead.Load())) }
	open := func() *journal {
		j, err := openJournal(dir, o.Events, clock)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	j := open()
	return storagetest.Harness{
		Store:   j,
		Advance: func(d time.Duration) { ahead.Add(int64(d)) },
		Reopen: func(t testing.TB) storage.Store {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			return open()
		},
		Save: func(t testing.TB) func(t testing.TB) storage.Store {
			file := filepath.Join(dir, "journal")
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			return func(t testing.TB) storage.Store {
				if err := errors.Join(j.Close(), os.WriteFile(file, data, 0o600)); err != nil {
					t.Fatal(err)
				}
				ahead.Add(int64(time.Second)) // nothing is restored in no time
				j = open()
				return j
			}
		},
	}
}

func TestJournal(t *testing.T)           { storagetest.Run(t, openHarness) }
func TestJournalConcurrent(t *testing.T) { storagetest.RunConcurrent(t, openHarness) }

func TestJournalMetamorphic(t *testing.T) {
	for seed := range uint64(3) {
		storagetest.RunMetamorphic(t, openHarness, seed, 1000)
	}
}

func TestJournalCrash(t *testing.T) {
	storagetest.RunCrash(t, storagetest.Crash{
		Rounds: 10, Seed: 1,
		Open: func(dir string) (storage.Store, error) { return openJournal(dir, 1_000_000, time.Now) },
	})
}

// A journal that acknowledges before it writes is what RunCrash is there for.
func openLateJournal(dir string) (storage.Store, error) {
	j, err := openJournal(dir, 1_000_000, time.Now)
	if err == nil {
		j.w = bufio.NewWriter(j.file)
	}
	return j, err
}
