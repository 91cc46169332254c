package bbs

import (
	"context"
	"iter"
	"reflect"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// labels are the functions that label the records of a process, by process guid.
type labels map[string]func(*lrp.ActualLRP)

// labelBytes is about how much memory the labels may take that are read together, if
// they are those of several processes: one process may have 128 KiB of routes.
const labelBytes = 256 << 10

// labelsOf reads the labels that the processes of records give to their instances.
// A process without a deployment, or with one that cannot be decoded, gives none.
// fits is false if the processes are several and their labels are too large.
func (b *BBS) labelsOf(ctx context.Context, records iter.Seq[*lrp.ActualLRP]) (known labels, fits bool, err error) {
	known = labels{}
	var guids []string
	for r := range records {
		if _, has := known[r.ProcessGUID]; !has && r.State == lrp.Running {
			known[r.ProcessGUID] = nil
			guids = append(guids, r.ProcessGUID)
		}
	}
	if len(guids) == 0 {
		return nil, true, nil
	}
	bytes := 0
	for i, err := range b.RoutingInfos(ctx, storage.DeploymentFilter{ProcessGUIDs: guids}) {
		if isCorrupt(err) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		if bytes += reached(reflect.ValueOf(i)); bytes > labelBytes && len(guids) > 1 {
			return nil, false, nil
		}
		known[i.ProcessGUID] = i.Labels()
	}
	return known, true, nil
}

// inParts calls use for each part of n elements in order, with the labels of their
// records, until use returns false. Parts begin with all elements and are halved until
// their labels fit. The records of one element are of one process.
func (b *BBS) inParts(ctx context.Context, n int, records func(i int, yield func(*lrp.ActualLRP) bool) bool, use func(from, to int, known labels) bool) error {
	for from, size := 0, n; from < n; {
		to := min(from+size, n)
		known, fits, err := b.labelsOf(ctx, func(yield func(*lrp.ActualLRP) bool) {
			for i := from; i < to && records(i, yield); i++ {
			}
		})
		switch {
		case err != nil:
			return err
		case !fits:
			size = (to - from) / 2
			continue
		case !use(from, to, known):
			return nil
		}
		from = to
	}
	return nil
}

// of is a labelled copy of a record, or the record itself if it gets no labels.
func (l labels) of(r *lrp.ActualLRP) *lrp.ActualLRP {
	if r == nil || l[r.ProcessGUID] == nil {
		return r
	}
	labelled := *r
	l[r.ProcessGUID](&labelled)
	return &labelled
}

// labelledAtOnce is how many elements of a list are labelled together.
const labelledAtOnce = 500

// labelled returns a list with labels. records returns the records of an element,
// and with replaces them by labelled ones.
func labelled[T any](ctx context.Context, b *BBS, list iter.Seq2[T, error],
	records func(*T, func(*lrp.ActualLRP) bool) bool, with func(T, labels) T,
) iter.Seq2[T, error] {
	type entry struct {
		value T
		err   error
	}
	return func(yield func(T, error) bool) {
		var part []entry
		flush := func() bool {
			more := true
			err := b.inParts(ctx, len(part), func(i int, yield func(*lrp.ActualLRP) bool) bool {
				return part[i].err != nil || records(&part[i].value, yield)
			}, func(from, to int, known labels) bool {
				for _, e := range part[from:to] {
					if more = yield(with(e.value, known), e.err); !more {
						break
					}
				}
				return more
			})
			if err != nil {
				var none T
				yield(none, err)
				return false
			}
			part = part[:0]
			return more
		}
		for value, err := range list {
			if part = append(part, entry{value, err}); len(part) == labelledAtOnce && !flush() {
				return
			}
		}
		flush()
	}
}

// labelledRecords labels the records of a list, if f asks for that.
func (b *BBS) labelledRecords(ctx context.Context, f storage.ActualLRPFilter, list iter.Seq2[lrp.ActualLRP, error]) iter.Seq2[lrp.ActualLRP, error] {
	if !f.Labels {
		return list
	}
	return labelled(ctx, b, list,
		func(r *lrp.ActualLRP, yield func(*lrp.ActualLRP) bool) bool { return yield(r) },
		func(r lrp.ActualLRP, l labels) lrp.ActualLRP { return *l.of(&r) })
}

// labelledGroups labels the records of groups, if f asks for that.
func (b *BBS) labelledGroups(ctx context.Context, f storage.ActualLRPFilter, list iter.Seq2[lrp.Group, error]) iter.Seq2[lrp.Group, error] {
	if !f.Labels {
		return list
	}
	return labelled(ctx, b, list,
		func(g *lrp.Group, yield func(*lrp.ActualLRP) bool) bool {
			return (g.Instance == nil || yield(g.Instance)) && (g.Evacuating == nil || yield(g.Evacuating))
		},
		func(g lrp.Group, l labels) lrp.Group {
			return lrp.Group{Instance: l.of(g.Instance), Evacuating: l.of(g.Evacuating)}
		})
}

// labelledEvents calls yield for each entry, with a function that labels the records
// of its event if f asks for labels and wants the event. The function replaces the
// records, which others read too. It reports whether yield always returned true.
func (b *BBS) labelledEvents(ctx context.Context, f storage.EventFilter, entries []tailEntry, yield func(*tailEntry, func(*storage.Event)) bool) (more bool, err error) {
	if !f.Labels {
		for i := range entries {
			if !yield(&entries[i], unlabelled) {
				return false, nil
			}
		}
		return true, nil
	}
	match := f.Matcher()
	about := func(e *storage.Event) *lrp.Event {
		if subject := e.Subject(); !match(&subject) {
			return nil
		}
		return e.LRP
	}
	more = true
	err = b.inParts(ctx, len(entries), func(i int, yield func(*lrp.ActualLRP) bool) bool {
		e := about(&entries[i].event)
		return e == nil || (e.Before == nil || yield(e.Before)) && (e.After == nil || yield(e.After))
	}, func(from, to int, known labels) bool {
		label := func(e *storage.Event) {
			if about(e) == nil {
				return
			}
			event := *e.LRP
			event.Before, event.After = known.of(event.Before), known.of(event.After)
			e.LRP = &event
		}
		if known == nil {
			label = unlabelled
		}
		for i := from; i < to && more; i++ {
			more = yield(&entries[i], label)
		}
		return more
	})
	return more, err
}

// unlabelled labels no event.
func unlabelled(*storage.Event) {}
