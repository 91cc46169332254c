package storagetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// RunMetamorphic does n random things to the store and to memstore and wants
// the same answers: from commands, from batches that are old or spoiled, from
// leases and from every list and filter. The same seed does the same things.
//
// When the answers differ it leaves out as many operations as it can while
// they still do, and prints the rest. For that it opens more stores.
//
// Nothing expires in the meantime, so clocks do not matter.
func RunMetamorphic(t *testing.T, open Open, seed uint64, n int) {
	t.Logf("seed %d, %d operations", seed, n)
	steps := make([]int, n)
	for i := range steps {
		steps[i] = i
	}
	try := func(steps []int) *difference {
		m := &metamorphic{fixture: newFixture(t, open, Options{}), model: memstore.New(nil), fold: newFold()}
		m.world = &world{now: func() time.Time { m.now = m.now.Add(time.Millisecond); return m.now }}
		defer m.Store.Close()
		defer m.model.Close()
		return m.run(seed, steps)
	}
	if d := try(steps); d != nil {
		d = reduce(steps[:d.steps], d, try)
		t.Fatalf("reduced to %d operations:\n%s\n%s", d.steps, strings.Join(d.trace, "\n"), d.what)
	}
}

// reduce leaves out steps, many at once and then fewer, as long as that still
// leads to a difference. It gives up after some tries.
func reduce(steps []int, found *difference, try func([]int) *difference) *difference {
	tries := 100
	for size := len(steps) / 2; size > 0; size /= 2 {
		for at := 0; at+size <= len(steps) && tries > 0; tries-- {
			without := slices.Concat(steps[:at], steps[at+size:])
			if d := try(without); d != nil {
				steps, found = without[:d.steps], d
			} else {
				at += size
			}
		}
	}
	return found
}

// A difference is one between the store and the model.
type difference struct {
	what  string
	steps int      // that were made
	trace []string // their names
}

type metamorphic struct {
	*fixture
	world *world
	model storage.Store
	rng   *rand.Rand
	fold  *fold
	trace []string
	// old are batches that were made before.
	old []storage.Batch
	// leases are those that were acquired, by the store and by the model.
	leases []map[storage.Store]storage.Lease
}

// run makes the steps. Each draws from its own source, so that it hardly
// depends on which were made before.
func (m *metamorphic) run(seed uint64, steps []int) (found *difference) {
	made := 0
	defer func() {
		switch what := recover().(type) {
		case nil:
		case differs:
			found = &difference{what: string(what), steps: made, trace: m.trace}
		default:
			panic(what)
		}
	}()
	m.rng = rand.New(rand.NewPCG(seed, 0)) // for when no step is left
	for _, step := range steps {
		made++
		m.rng = rand.New(rand.NewPCG(seed, uint64(step)))
		m.world.rng = m.rng
		op := m.operation()
		m.trace = append(m.trace, fmt.Sprintf("%5d %s", step, op.name))
		got, want := op.do(m.ctx, m.Store), op.do(m.ctx, m.model)
		if class(got) != class(want) {
			m.fail("the store says: %v\nmemstore says:  %v", got, want)
		}
		if want != nil && class(want) == "" && !refusal(want) {
			m.fail("the operation fails: %v", want)
		}
		m.compareSome()
	}
	m.compareAll()
	return nil
}

// differs is what fail panics with.
type differs string

func (m *metamorphic) fail(format string, args ...any) { panic(differs(fmt.Sprintf(format, args...))) }

// class is what callers act on in an error. Which of several writes a conflict
// is about is for the store to say, so ErrExists and ErrNotFound are left out.
func class(err error) string {
	for _, sentinel := range []error{
		storage.ErrConflict, storage.ErrDuplicate, storage.ErrFenced, storage.ErrHeld, storage.ErrGone, storage.ErrCorrupt, storage.ErrNotFound,
	} {
		if errors.Is(err, sentinel) {
			return sentinel.Error()
		}
	}
	if err == nil {
		return "none"
	}
	return ""
}

func (m *metamorphic) operation() operation {
	switch n := m.rng.IntN(100); {
	case n < 75:
		return m.world.operation()
	case n < 90:
		return m.batch()
	default:
		return m.lease()
	}
}

// batch is several decisions in one, or a batch from before, with a request id
// or a fence now and then.
func (m *metamorphic) batch() operation {
	var b storage.Batch
	var parts []string
	if len(m.old) > 0 && m.rng.IntN(3) == 0 {
		b = m.old[m.rng.IntN(len(m.old))]
		parts = append(parts, "an old batch")
	} else {
		for range 1 + m.rng.IntN(3) {
			guid, index, command, now := m.world.process(), m.rng.IntN(3), m.world.command(), m.world.now()
			slot, d, err := m.model.Slot(m.ctx, guid, index)
			m.must(err)
			decision, err := lrp.Step(slot, d, command, now, lrp.Policy{})
			if err != nil || decision.Deployment != nil {
				continue
			}
			b.AddLRP(slot, d, decision)
			parts = append(parts, fmt.Sprintf("%s %s/%d", command.Name(), guid, index))
		}
		if b.Check() != nil { // twice the same record
			return operation{"nothing", func(context.Context, storage.Store) error { return nil }}
		}
		// A creation that is repeated later may find its key free again, and
		// is then another record with the same epoch, which no Step makes.
		if !slices.ContainsFunc(b.ActualLRPs, func(w lrp.Write) bool { return w.Before == nil }) {
			m.old = append(m.old, b)
		}
		if len(m.old) > 20 {
			m.old = m.old[1:]
		}
	}
	if m.rng.IntN(4) == 0 {
		b.RequestID = m.world.pick("request", "Request", "another", fmt.Sprint(len(m.trace)))
		parts = append(parts, "as "+b.RequestID)
	}
	var fence map[storage.Store]storage.Lease
	if len(m.leases) > 0 && m.rng.IntN(4) == 0 {
		fence = m.leases[m.rng.IntN(len(m.leases))]
		parts = append(parts, "fenced")
	}
	return operation{"batch: " + strings.Join(parts, ", "), func(ctx context.Context, s storage.Store) error {
		b := b
		if l, ok := fence[s]; ok {
			b.Fence = l.Fence()
		}
		_, err := s.Commit(ctx, b)
		return err
	}}
}

func (m *metamorphic) lease() operation {
	const ttl = 24 * time.Hour
	if len(m.leases) == 0 || m.rng.IntN(3) == 0 {
		l := storage.Lease{Kind: storage.CellLease, Name: m.world.pick("cell-1", "Cell-1"), Owner: m.world.pick("a", "A"), Value: []byte(m.world.pick("x", ""))}
		got := map[storage.Store]storage.Lease{}
		m.leases = append(m.leases, got)
		return operation{fmt.Sprintf("acquire %s for %s", l.Name, l.Owner), func(ctx context.Context, s storage.Store) (err error) {
			l, err := s.Acquire(ctx, l, ttl)
			if err == nil {
				got[s] = l
			}
			return err
		}}
	}
	mine := m.leases[m.rng.IntN(len(m.leases))]
	release, value := m.rng.IntN(2) == 0, m.world.pick("x", "y")
	return operation{fmt.Sprintf("renew or release, %v", release), func(ctx context.Context, s storage.Store) error {
		l, ok := mine[s]
		if !ok {
			return nil
		}
		if release {
			return s.Release(ctx, l)
		}
		l.Value = []byte(value)
		_, err := s.Renew(ctx, l, ttl)
		return err
	}}
}

// compareSome compares one random list.
func (m *metamorphic) compareSome() {
	some := func(values ...string) []string {
		return values[:m.rng.IntN(len(values)+1)]
	}
	guids := some(m.world.process(), m.world.process())
	cells := some(m.world.instance().CellID, "")
	domains := some("domain", "Domain")
	switch m.rng.IntN(8) {
	case 0:
		f := storage.ActualLRPFilter{
			ProcessGUIDs: guids, CellIDs: cells, Domains: domains,
			Indices:   []int{0, 2}[:m.rng.IntN(3)],
			States:    []lrp.State{lrp.Running, lrp.Unclaimed}[:m.rng.IntN(3)],
			Presences: []lrp.Presence{lrp.Ordinary, lrp.Suspect}[:m.rng.IntN(3)],
		}
		compareLists(m, f, func(r storage.Reader) iter.Seq2[lrp.ActualLRP, error] { return r.ActualLRPs(m.ctx, f) })
	case 1:
		f := storage.DeploymentFilter{
			ProcessGUIDs: guids, Domains: domains, Bare: m.rng.IntN(2) == 0, WithoutDefinitions: m.rng.IntN(2) == 0,
			DefinitionIDs: some("D", "absent", "d"),
		}
		compareLists(m, f, func(r storage.Reader) iter.Seq2[*lrp.Deployment, error] { return r.Deployments(m.ctx, f) })
	case 2:
		f := storage.TaskFilter{CellIDs: cells, Domains: domains, States: []task.State{task.Running, task.Pending}[:m.rng.IntN(3)], Bare: m.rng.IntN(2) == 0}
		compareLists(m, f, func(r storage.Reader) iter.Seq2[*task.Task, error] { return r.Tasks(m.ctx, f) })
	case 3:
		m.compareEvents(guids, cells, domains)
	case 4:
		m.compareLeases()
	case 5:
		guid, index := m.world.process(), m.rng.IntN(3)
		gotSlot, gotD, gotErr := m.Store.Slot(m.ctx, guid, index)
		wantSlot, wantD, wantErr := m.model.Slot(m.ctx, guid, index)
		if !Equal(gotSlot, wantSlot) || !Equal(gotD, wantD) || class(gotErr) != class(wantErr) {
			m.fail("slot %s/%d: %s %s %v\nwant %s %s %v", guid, index, show(gotSlot), show(gotD), gotErr, show(wantSlot), show(wantD), wantErr)
		}
	case 7:
		guid, index := m.world.process(), m.rng.IntN(3)
		recalled, ok := storage.Recall(m.Store, guid, index)
		slot, d, err := m.model.Slot(m.ctx, guid, index)
		if ok && (err != nil || !Equal(recalled.Slot, slot) || !Equal(recalled.Deployment, d)) {
			m.fail("slot %s/%d is recalled as %s %s\nwant %s %s %v", guid, index, show(recalled.Slot), show(recalled.Deployment), show(slot), show(d), err)
		}
	case 6:
		guid := m.world.process()
		got, gotErr := m.Store.Deployment(m.ctx, guid)
		want, wantErr := m.model.Deployment(m.ctx, guid)
		if !Equal(got, want) || class(gotErr) != class(wantErr) {
			m.fail("deployment %s: %s %v\nwant %s %v", guid, show(got), gotErr, show(want), wantErr)
		}
	}
}

func (m *metamorphic) compareEvents(guids, cells, domains []string) {
	extent, err := m.model.Log(m.ctx)
	m.must(err)
	after := storage.Cursor(m.rng.Int64N(int64(extent.Newest) + 2))
	if m.rng.IntN(4) > 0 {
		after = max(0, extent.Newest-100)
	}
	f := storage.EventFilter{ProcessGUIDs: guids, CellIDs: cells, Domains: domains}
	if m.rng.IntN(2) == 0 {
		f.Kinds = []string{lrp.InstanceChanged.String(), storage.KindTaskChanged}
	}
	untimed := func(r storage.Reader) iter.Seq2[storage.Event, error] {
		return func(yield func(storage.Event, error) bool) {
			for e, err := range r.Events(m.ctx, after, f) {
				e.At = time.Time{}
				if !yield(e, err) {
					return
				}
			}
		}
	}
	compareLists(m, fmt.Sprintf("after %d, %+v", after, f), untimed)
}

func (m *metamorphic) compareLeases() {
	compareLists(m, storage.CellLease, func(r storage.Reader) iter.Seq2[storage.Lease, error] {
		return func(yield func(storage.Lease, error) bool) {
			for l, err := range r.Leases(m.ctx, storage.CellLease) {
				l.ExpiresAt = time.Time{}
				if !yield(l, err) {
					return
				}
			}
		}
	})
}

// compareLists compares a list of the store with the same of the model.
func compareLists[T any](m *metamorphic, what any, list func(storage.Reader) iter.Seq2[T, error]) {
	m.Helper()
	collect := func(s storage.Store) (out []T, last error) {
		for v, err := range list(s) {
			if last = err; err == nil {
				out = append(out, v)
			}
		}
		return out, last
	}
	got, gotErr := collect(m.Store)
	want, wantErr := collect(m.model)
	if !Equal(got, want) || class(gotErr) != class(wantErr) {
		m.fail("%T %+v:\n got %s %v\nwant %s %v", what, what, show(got), gotErr, show(want), wantErr)
	}
}

// compareAll compares everything, and with what the events tell.
func (m *metamorphic) compareAll() {
	m.Helper()
	compareLists(m, "all", func(r storage.Reader) iter.Seq2[lrp.ActualLRP, error] {
		return r.ActualLRPs(m.ctx, storage.ActualLRPFilter{})
	})
	compareLists(m, "all", func(r storage.Reader) iter.Seq2[*lrp.Deployment, error] {
		return r.Deployments(m.ctx, storage.DeploymentFilter{})
	})
	compareLists(m, "all", func(r storage.Reader) iter.Seq2[*task.Task, error] {
		return r.Tasks(m.ctx, storage.TaskFilter{})
	})
	compareLists(m, "domains", func(r storage.Reader) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			for d, err := range r.Domains(m.ctx) {
				if !yield(fmt.Sprint(d.Name, d.ExpiresAt.IsZero()), err) {
					return
				}
			}
		}
	})
	m.compareLeases()
	m.compareEvents(nil, nil, nil)
	if err := m.Store.View(m.ctx, func(r storage.Reader) error { return m.fold.compare(m.ctx, r) }); err != nil {
		m.fail("the events tell something else than the records: %v", err)
	}
}
