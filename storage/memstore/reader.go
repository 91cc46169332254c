package memstore

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A source is where a reader gets the state that it reads.
type source interface {
	// time is the store's clock.
	time(ctx context.Context) (time.Time, error)
	// still returns a state that does not change any more; its leases may, unless
	// they are wanted.
	still(ctx context.Context, leases bool) (*state, time.Time, error)
	// hold returns a state that does not change until letGo is called.
	hold(ctx context.Context) (s *state, letGo func(), err error)
}

// A view is the source of a View: one state for as long as that lasts.
type view struct {
	state *state
	now   time.Time
	over  bool
}

func (v *view) still(ctx context.Context, _ bool) (*state, time.Time, error) {
	if v.over {
		return nil, time.Time{}, errOver
	}
	return v.state, v.now, ctx.Err()
}

func (v *view) time(ctx context.Context) (time.Time, error) {
	_, now, err := v.still(ctx, true)
	return now, err
}

func (v *view) hold(ctx context.Context) (*state, func(), error) {
	s, _, err := v.still(ctx, true)
	return s, func() {}, err
}

// A reader implements storage.Reader.
type reader struct{ source }

// Now implements [storage.Reader]. It returns the time by Options.Now, in UTC.
func (r reader) Now(ctx context.Context) (time.Time, error) { return r.time(ctx) }

// list makes a list of the values that each yields from a state. It checks the
// context now and then.
func list[T any](r reader, ctx context.Context, each func(s *state, now time.Time, yield func(T, error) bool)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var what T
		_, leases := any(what).(storage.Lease)
		s, now, err := r.still(ctx, leases)
		if err != nil {
			var none T
			yield(none, err)
			return
		}
		n := 0
		each(s, now, func(v T, err error) bool {
			if n++; n%256 == 0 && ctx.Err() != nil {
				var none T
				yield(none, ctx.Err())
				return false
			}
			return yield(v, err)
		})
	}
}

// Deployments implements [storage.Reader]. The list is a snapshot of the moment
// at which it is ranged over.
func (r reader) Deployments(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	match := f.Matcher()
	corrupt := storage.DeploymentFilter{ProcessGUIDs: f.ProcessGUIDs, Domains: f.Domains} // whose labels nobody knows
	matchCorrupt := corrupt.Matcher()
	return list(r, ctx, func(s *state, _ time.Time, yield func(*lrp.Deployment, error) bool) {
		one := func(guid string, d deployed) bool {
			if err := s.corruptAt(storage.DeploymentKey(guid)); err != nil {
				return !matchCorrupt(d.bare) || yield(nil, err)
			}
			if !match(d.whole) {
				return true
			}
			switch {
			case f.Bare:
				return yield(d.bare, nil)
			case f.WithoutDefinitions:
				return yield(storage.WithoutDefinitions(d.whole), nil)
			case len(f.DefinitionIDs) > 0:
				return yield(storage.WithDefinitions(d.whole, f.DefinitionIDs...), nil)
			}
			return yield(d.listed, nil)
		}
		if len(f.ProcessGUIDs) == 0 {
			s.deployments.ascend("", one)
			return
		}
		for _, guid := range sorted(f.ProcessGUIDs) {
			if d, ok := s.deployments.get(guid); ok && !one(guid, d) {
				return
			}
		}
	})
}

// Deployment implements [storage.Reader]. The error is a *storage.NotFoundError
// or a *storage.CorruptError.
func (r reader) Deployment(ctx context.Context, processGUID string) (*lrp.Deployment, error) {
	s, letGo, err := r.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer letGo()
	key := storage.DeploymentKey(processGUID)
	d, ok := s.deployments.get(processGUID)
	if !ok {
		return nil, &storage.NotFoundError{Key: key}
	}
	if err := s.corruptAt(key); err != nil {
		return nil, err
	}
	return d.whole, nil
}

// ActualLRPs implements [storage.Reader]. The list is a snapshot of the moment
// at which it is ranged over.
func (r reader) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	match := f.Matcher()
	return list(r, ctx, func(s *state, _ time.Time, yield func(lrp.ActualLRP, error) bool) {
		one := func(_ lrpKey, rec *lrp.ActualLRP) bool {
			if !match(rec) {
				return true
			}
			if err := s.corruptAt(storage.ActualLRPKey(rec)); err != nil {
				return yield(lrp.ActualLRP{}, err)
			}
			return yield(*rec, nil)
		}
		switch {
		case len(f.ProcessGUIDs) > 0:
			for _, guid := range sorted(f.ProcessGUIDs) {
				more := true
				s.lrps.ascend(lrpKey{guid: guid}, func(k lrpKey, rec *lrp.ActualLRP) bool {
					if k.guid != guid {
						return false
					}
					more = one(k, rec)
					return more
				})
				if !more {
					return
				}
			}
		case len(f.CellIDs) == 1 && f.CellIDs[0] != "":
			s.onCells.ascend(cellKey{cell: f.CellIDs[0]}, func(k cellKey, _ struct{}) bool {
				if k.cell != f.CellIDs[0] {
					return false
				}
				rec, _ := s.lrps.get(k.lrp)
				return one(k.lrp, rec)
			})
		default:
			s.lrps.ascend(lrpKey{}, one)
		}
	})
}

// sorted is the distinct values in order.
func sorted(values []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(values)))
}

// Slot implements [storage.Reader]. The error is a *storage.CorruptError if one
// of the records or the deployment cannot be decoded.
func (r reader) Slot(ctx context.Context, processGUID string, index int) (lrp.Slot, *lrp.Deployment, error) {
	s, letGo, err := r.hold(ctx)
	if err != nil {
		return lrp.Slot{}, nil, err
	}
	defer letGo()
	o, err := s.slot(processGUID, index)
	if err != nil {
		return lrp.Slot{}, nil, err
	}
	return o.slot(), o.deployment, nil
}

// Tasks implements [storage.Reader]. The list is a snapshot of the moment at
// which it is ranged over.
func (r reader) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	match := f.Matcher()
	corrupt := storage.TaskFilter{CellIDs: f.CellIDs, Domains: f.Domains, States: f.States} // whose labels nobody knows
	matchCorrupt := corrupt.Matcher()
	return list(r, ctx, func(s *state, _ time.Time, yield func(*task.Task, error) bool) {
		s.tasks.ascend("", func(guid string, t *task.Task) bool {
			if err := s.corruptAt(storage.TaskKey(guid)); err != nil {
				return !matchCorrupt(t) || yield(nil, err)
			}
			if !match(t) {
				return true
			}
			if f.Bare {
				t = storage.BareTask(t)
			}
			return yield(t, nil)
		})
	})
}

// Task implements [storage.Reader]. The error is a *storage.NotFoundError or a
// *storage.CorruptError.
func (r reader) Task(ctx context.Context, guid string) (*task.Task, error) {
	s, letGo, err := r.hold(ctx)
	if err != nil {
		return nil, err
	}
	defer letGo()
	t, ok := s.tasks.get(guid)
	if !ok {
		return nil, &storage.NotFoundError{Key: storage.TaskKey(guid)}
	}
	if err := s.corruptAt(storage.TaskKey(guid)); err != nil {
		return nil, err
	}
	return t, nil
}

// Domains implements [storage.Reader]. The list is a snapshot of the moment at
// which it is ranged over.
func (r reader) Domains(ctx context.Context) iter.Seq2[lrp.Domain, error] {
	return list(r, ctx, func(s *state, _ time.Time, yield func(lrp.Domain, error) bool) {
		s.domains.ascend("", func(_ string, d lrp.Domain) bool { return yield(d, nil) })
	})
}

// Leases implements [storage.Reader]. The list is a snapshot of the moment at
// which it is ranged over.
func (r reader) Leases(ctx context.Context, kind string) iter.Seq2[storage.Lease, error] {
	return list(r, ctx, func(s *state, now time.Time, yield func(storage.Lease, error) bool) {
		s.leases.ascend(leaseKey{kind: kind}, func(k leaseKey, l lease) bool {
			if k.kind != kind {
				return false
			}
			return l.free(now) || yield(l.Lease, nil)
		})
	})
}

// Events implements [storage.Reader]. The list is a snapshot of the moment at
// which it is ranged over, and ends with the newest event of that moment. It is
// one *storage.GoneError if events after the position are not in the log.
func (r reader) Events(ctx context.Context, after storage.Cursor, f storage.EventFilter) iter.Seq2[storage.Event, error] {
	match := f.Matcher()
	return list(r, ctx, func(s *state, _ time.Time, yield func(storage.Event, error) bool) {
		if err := s.extent().Check(after, s.gaps); err != nil {
			yield(storage.Event{}, err)
			return
		}
		log := s.after(after)
		var subject storage.Subject // once, because match lets it escape
		for i := range log {
			if subject = log[i].Subject(); !match(&subject) {
				continue
			}
			e, err := log[i], s.corruptAt(storage.EventKey(log[i].Sequence))
			if err != nil {
				e = storage.Event{}
			}
			if !yield(e, err) {
				return
			}
		}
	})
}

// Log implements [storage.Reader].
func (r reader) Log(ctx context.Context) (storage.Extent, error) {
	s, letGo, err := r.hold(ctx)
	if err != nil {
		return storage.Extent{}, err
	}
	defer letGo()
	return s.extent(), nil
}
