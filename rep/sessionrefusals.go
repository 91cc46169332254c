package rep

import (
	"context"
	"sync"
	"time"

	"github.com/diegosdk/diego/storage"
)

// A SessionAuditor is an optional interface of an API: it hears of sessions that were
// refused before they reached the cell, because the caller lacks the role or the
// domain. Without it, nobody hears of these. Its method may be called concurrently,
// and must return at once.
type SessionAuditor interface {
	// Refused says that the caller of ctx may not have a session, and why. The other
	// arguments are those of Rep.Audited.
	Refused(ctx context.Context, containerGUID, kind string, command []string, why error)
}

// refusalsEach is how many refused sessions of one caller are reported in a
// refusalTime. The rest are only counted.
const (
	refusalsEach = 10
	refusalTime  = time.Minute
)

// refusals bound what is reported of refused sessions. The zero value has none.
type refusals struct {
	mu    sync.Mutex
	since time.Time
	of    map[refuser]*refused
}

// A refuser is counted by itself. What the BBS hears of one is not lost in the counts
// of attempts on containers of no work, which only the cell's log has.
type refuser struct {
	caller string
	ofWork bool
}

type refused struct {
	reported   int // since refusals.since
	unreported int // since the last one that was reported
}

// report says whether a refused session is to be reported, and how many were not
// since the last one.
func (q *refusals) report(from refuser, now time.Time) (unreported int, yes bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.since) >= refusalTime || now.Before(q.since) {
		before := q.of
		q.since, q.of = now, map[refuser]*refused{}
		for name, r := range before {
			if r.unreported > 0 {
				q.of[name] = &refused{unreported: r.unreported}
			}
		}
	}
	r := q.of[from]
	if r == nil {
		r = &refused{}
		q.of[from] = r
	}
	if r.reported == refusalsEach {
		r.unreported++
		return 0, false
	}
	unreported, r.unreported = r.unreported, 0
	r.reported++
	return unreported, true
}

// Refused reports a session that the caller of ctx may not have, and why, to the
// cell's log, and to the BBS's log of events if the container belongs to work. Of
// each caller it reports ten in a minute and counts the others; the next report has
// their number. The other arguments are those of [Rep.Audited].
func (r *Rep) Refused(ctx context.Context, containerGUID, kind string, command []string, why error) {
	e, log := r.audit(ctx, containerGUID, kind, command)
	unreported, yes := r.refusals.report(refuser{storage.Caller(ctx), e.ID != ""}, r.o.Now())
	if !yes {
		return
	}
	e.EndedAt, e.End, e.Refused, e.Unreported = e.BeganAt, beginning(why.Error(), maxAuditedBytes), true, unreported
	log.Warn("a session was refused", "err", e.End, "unreported", unreported)
	r.reportSession(ctx, e)
}
