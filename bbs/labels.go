package bbs

import (
	"context"
	"iter"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// labels are the functions that label the records of a process, by process guid.
type labels map[string]func(*lrp.ActualLRP)

// labelsOf reads the labels that the processes of records give to their instances.
// A process without a deployment, or with one that cannot be decoded, gives none.
func (b *BBS) labelsOf(ctx context.Context, records iter.Seq[*lrp.ActualLRP]) (labels, error) {
	known := labels{}
	var guids []string
	for r := range records {
		if _, has := known[r.ProcessGUID]; !has && r.State == lrp.Running {
			known[r.ProcessGUID] = nil
			guids = append(guids, r.ProcessGUID)
		}
	}
	if len(guids) == 0 {
		return nil, nil
	}
	for i, err := range b.RoutingInfos(ctx, storage.DeploymentFilter{ProcessGUIDs: guids}) {
		if isCorrupt(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		known[i.ProcessGUID] = i.Labels()
	}
	return known, nil
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
			known, err := b.labelsOf(ctx, func(yield func(*lrp.ActualLRP) bool) {
				for i := range part {
					if part[i].err == nil && !records(&part[i].value, yield) {
						return
					}
				}
			})
			if err != nil {
				var none T
				yield(none, err)
				return false
			}
			for _, e := range part {
				if !yield(with(e.value, known), e.err) {
					return false
				}
			}
			part = part[:0]
			return true
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

// unlabelled labels no event.
func unlabelled(*storage.Event) {}

// eventLabels returns a function that labels the records of an event of a list, if
// f asks for labels and wants the event. It replaces the records, which others
// read too. One labelled event at a time is in memory: labels may be large.
func (b *BBS) eventLabels(ctx context.Context, f storage.EventFilter, entries []tailEntry) (func(*storage.Event), error) {
	if !f.Labels {
		return unlabelled, nil
	}
	match := f.Matcher()
	about := func(e *storage.Event) *lrp.Event {
		if subject := e.Subject(); !match(&subject) {
			return nil
		}
		return e.LRP
	}
	known, err := b.labelsOf(ctx, func(yield func(*lrp.ActualLRP) bool) {
		for i := range entries {
			if e := about(&entries[i].event); e != nil {
				if e.Before != nil && !yield(e.Before) || e.After != nil && !yield(e.After) {
					return
				}
			}
		}
	})
	if err != nil || known == nil {
		return unlabelled, err
	}
	return func(e *storage.Event) {
		if about(e) == nil {
			return
		}
		event := *e.LRP
		event.Before, event.After = known.of(event.Before), known.of(event.After)
		e.LRP = &event
	}, nil
}
