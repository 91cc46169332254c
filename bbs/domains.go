package bbs

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// UpsertDomain says that everything desired in a domain is complete and up to
// date: for ttl, or for ever if ttl is 0 (002 §Domain Freshness).
func (b *BBS) UpsertDomain(ctx context.Context, name string, ttl time.Duration) error {
	if err := (lrp.Domain{Name: name}).Validate(); err != nil {
		return b.answer("UpsertDomain", err)
	}
	_, err := storage.Apply(ctx, b.o.Store, nil, func(context.Context, storage.Reader) (batch storage.Batch, err error) {
		batch.AddDomain(name, ttl)
		return batch, nil
	})
	return b.answer("UpsertDomain", err)
}

// A DomainStatus says whether surplus instances of a domain are stopped.
type DomainStatus struct {
	Domain string `json:"domain"`
	// Fresh is false for a domain whose time is up, and for one that was never
	// made fresh although something is desired in it. Surplus instances of such a
	// domain are not stopped.
	Fresh bool `json:"fresh"`
	// ExpiresAt is when a fresh domain stops being fresh, or when it did; zero
	// means never.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Known is false for a domain that was never made fresh, and for one that has
	// not been fresh for more than a day, which the store has deleted.
	Known bool `json:"known"`
}

// Domains lists all domains that were fresh within the last day and all that
// have deployments, ordered by name. It omits a deployment that cannot be
// decoded.
func (b *BBS) Domains(ctx context.Context) ([]DomainStatus, error) {
	byName := map[string]DomainStatus{}
	err := b.o.Store.View(ctx, func(r storage.Reader) error {
		now, err := r.Now(ctx)
		if err != nil {
			return err
		}
		for d, err := range r.Deployments(ctx, storage.DeploymentFilter{Bare: true}) {
			if isCorrupt(err) {
				continue // convergence moves it away
			}
			if err != nil {
				return err
			}
			byName[d.Domain] = DomainStatus{Domain: d.Domain}
		}
		for d, err := range r.Domains(ctx) {
			if err != nil {
				return err
			}
			byName[d.Name] = DomainStatus{Domain: d.Name, Fresh: d.Fresh(now), ExpiresAt: d.ExpiresAt, Known: true}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	list := make([]DomainStatus, 0, len(byName))
	for _, d := range byName {
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b DomainStatus) int { return cmp.Compare(a.Domain, b.Domain) })
	return list, nil
}

// Cells lists the present cells, ordered by id.
func (b *BBS) Cells(ctx context.Context) ([]CellPresence, error) {
	return presences(ctx, b.o.Store)
}

// Announce makes a cell present for ttl (default 15 s), or renews that, for
// callers without access to the store. Owner names this run of the cell. The
// error wraps storage.ErrHeld if another run of it is present.
func (b *BBS) Announce(ctx context.Context, p CellPresence, owner string, ttl time.Duration) error {
	a, err := NewAnnouncer(AnnouncerOptions{Store: b.o.Store, Presence: p, Owner: owner, TTL: ttl})
	if err != nil {
		return b.answer("Announce", err)
	}
	return b.answer("Announce", a.tick(ctx))
}

// Leave ends the presence of a cell at once, for callers without access to the
// store. If the cell is not present, that is not an error; if another run of it
// is, the error wraps storage.ErrHeld.
func (b *BBS) Leave(ctx context.Context, cellID, owner string) error {
	a, err := NewAnnouncer(AnnouncerOptions{Store: b.o.Store, Presence: CellPresence{CellID: cellID}, Owner: owner})
	if err != nil {
		return b.answer("Leave", err)
	}
	// Only the store knows the lease's epoch. The owner learns it by taking the
	// lease over.
	if err := a.tick(ctx); err != nil {
		return b.answer("Leave", err)
	}
	return b.answer("Leave", a.Leave(ctx))
}
