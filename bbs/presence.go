package bbs

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// A CellPresence is what a cell says about itself while it is present.
type CellPresence struct {
	CellID string `json:"cell_id"`
	// Address is how the control plane reaches the cell, or empty. A cell that
	// announces itself over HTTP gives the base URL of its own HTTP API.
	Address string `json:"address,omitempty"`
	Zone    string `json:"zone,omitempty"`
	// Capacity is the size of the cell.
	Capacity              auction.Capacity `json:"capacity"`
	RootFSProviders       []string         `json:"rootfs_providers,omitempty"`
	VolumeDrivers         []string         `json:"volume_drivers,omitempty"`
	PlacementTags         []string         `json:"placement_tags,omitempty"`
	OptionalPlacementTags []string         `json:"optional_placement_tags,omitempty"`
}

// AnnouncerOptions are the options of an [Announcer]. Zero values mean the
// defaults.
type AnnouncerOptions struct {
	// Store keeps the lease. It is required, unless BBS is set.
	Store storage.Leaser
	// BBS keeps the lease of a cell without access to the store.
	BBS Presences
	// Presence is what the cell says about itself; its CellID is required.
	Presence CellPresence
	// VolumeDrivers returns the drivers of the moment, in place of those of
	// Presence, each time the cell is announced. Nil means that they never
	// change.
	VolumeDrivers func() []string
	// Owner names this run of the cell, and is unique: a cell that starts again
	// under its id waits for the end of the earlier presence. A run that can prove
	// that the one before is over, for example by a lock that both had, has the
	// same Owner and takes over at once. It is required.
	Owner string
	// TTL is how long a cell stays present without a renewal (default 15 s). It is
	// at most MaxPresenceTTL; the presence is renewed three times in that time.
	TTL time.Duration
}

// Presences announces a cell through a BBS, usually an httpapi.RemoteBBS. Its
// methods may be called at the same time.
type Presences interface {
	Announce(ctx context.Context, p CellPresence, owner string, ttl time.Duration) error
	Leave(ctx context.Context, cellID, owner string) error
}

// An Announcer keeps a cell present (000 §Maintaining the Cell's presence).
// All methods may be called at the same time.
type Announcer struct {
	o AnnouncerOptions
	// value is the presence in JSON if it never changes.
	value []byte

	mu    sync.Mutex
	lease storage.Lease
}

// MaxPresenceTTL is the longest TTL of a presence, so that a mistake in the
// settings cannot hide the loss of a cell for longer.
const MaxPresenceTTL = time.Hour

// NewAnnouncer fails with an *executor.ValidationError if a required option is
// missing, the TTL is outside its limits, or the presence is too large.
func NewAnnouncer(o AnnouncerOptions) (*Announcer, error) {
	var v executor.Validator
	v.Check((o.Store != nil) != (o.BBS != nil), "store", "", "either a store or a BBS")
	v.Check(o.Owner != "", "owner", "", "not empty")
	v.Check(o.Presence.CellID != "", "cell_id", "", "not empty")
	value, err := json.Marshal(o.presence())
	if err != nil {
		return nil, err
	}
	v.Check(len(value) <= storage.MaxLeaseValueBytes, "presence", fmt.Sprintf("%d bytes", len(value)), "at most 32768 bytes")
	o.TTL = cmp.Or(o.TTL, 15*time.Second)
	v.Check(o.TTL >= minRenewedTTL && o.TTL <= MaxPresenceTTL, "ttl", o.TTL, "at least 3ms and at most 1h")
	if o.VolumeDrivers != nil {
		value = nil
	}
	return &Announcer{o: o, value: value}, v.Err()
}

// presence is what the cell says about itself now.
func (o *AnnouncerOptions) presence() CellPresence {
	p := o.Presence
	if o.VolumeDrivers != nil {
		p.VolumeDrivers = o.VolumeDrivers()
	}
	return p
}

// Tick announces the cell, or renews its presence. The error wraps
// storage.ErrHeld if another run of the cell is present, and says where.
func (a *Announcer) Tick(ctx context.Context) error {
	err := a.tick(ctx)
	if errors.Is(err, storage.ErrHeld) {
		var held *storage.HeldError
		var other CellPresence
		if errors.As(err, &held) && json.Unmarshal(held.Lease.Value, &other) == nil && other.Address != "" {
			err = fmt.Errorf("the one at %s: %w", other.Address, err)
		}
	}
	return err
}

func (a *Announcer) tick(ctx context.Context) error {
	if a.o.BBS != nil {
		return a.o.BBS.Announce(ctx, a.o.presence(), a.o.Owner, a.o.TTL)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	value, err := a.value, error(nil)
	if value == nil {
		value, err = json.Marshal(a.o.presence())
	}
	if err != nil {
		return err
	}
	if a.lease.Epoch != 0 {
		a.lease.Value = value
		var renewed storage.Lease
		if renewed, err = a.o.Store.Renew(ctx, a.lease, a.o.TTL); err == nil {
			a.lease = renewed
		}
		if !errors.Is(err, storage.ErrFenced) {
			return err
		}
		a.lease = storage.Lease{}
	}
	lease, err := a.o.Store.Acquire(ctx, storage.Lease{
		Kind: storage.CellLease, Name: a.o.Presence.CellID, Owner: a.o.Owner, Value: value,
	}, a.o.TTL)
	if err == nil {
		a.lease = lease
	}
	return err
}

// Leave ends the presence at once.
func (a *Announcer) Leave(ctx context.Context) error {
	if a.o.BBS != nil {
		return a.o.BBS.Leave(ctx, a.o.Presence.CellID, a.o.Owner)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.lease.Epoch == 0 {
		return nil
	}
	err := a.o.Store.Release(ctx, a.lease)
	if err == nil || errors.Is(err, storage.ErrFenced) {
		a.lease = storage.Lease{}
		return nil
	}
	return err
}

// Run announces the cell until ctx ends, in spite of failures in between, and
// then leaves. It returns ctx's error.
func (a *Announcer) Run(ctx context.Context) error {
	every := a.o.TTL / 3
	tick := func() {
		ctx, cancel := context.WithTimeout(ctx, every)
		defer cancel()
		_ = a.Tick(ctx) // a list of the cells shows that it failed
	}
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		tick()
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), every)
			defer cancel()
			_ = a.Leave(last)
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// presences lists the present cells, ordered by id.
func presences(ctx context.Context, r storage.Reader) ([]CellPresence, error) {
	var list []CellPresence
	for lease, err := range r.Leases(ctx, storage.CellLease) {
		if err != nil {
			return nil, err
		}
		list = append(list, presenceOf(&lease))
	}
	return list, nil
}

// presenceOf is what the value of a cell's lease says. If it cannot be read, only
// the cell's id is known.
func presenceOf(lease *storage.Lease) (p CellPresence) {
	if json.Unmarshal(lease.Value, &p) != nil {
		p = CellPresence{}
	}
	p.CellID = lease.Name
	return p
}

// A roster lists the present cells like presences. It remembers what each lease
// says, because that seldom changes and every round of an auction asks. Its methods
// may be called at the same time. The lists share their slices.
type roster struct {
	mu    sync.Mutex
	known map[string]enrolled // by the name of the lease
}

type enrolled struct {
	value    []byte
	presence CellPresence
}

func (o *roster) list(ctx context.Context, r storage.Reader) ([]CellPresence, error) {
	var leases []storage.Lease
	for lease, err := range r.Leases(ctx, storage.CellLease) {
		if err != nil {
			return nil, err
		}
		leases = append(leases, lease)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	list, known := make([]CellPresence, len(leases)), make(map[string]enrolled, len(leases))
	for i := range leases {
		l := &leases[i]
		e, before := o.known[l.Name]
		if !before || !bytes.Equal(e.value, l.Value) {
			e = enrolled{l.Value, presenceOf(l)}
		}
		list[i], known[l.Name] = e.presence, e
	}
	o.known = known
	return list, nil
}

// A Dial makes the client of a present cell. It does not connect, and fails
// only if the presence is invalid. A directory keeps the client for as long as
// the cell's id and address stay the same, and calls its Dial from one goroutine
// at a time.
type Dial func(CellPresence) (auction.CellClient, error)

// NewDirectory finds cells by their presences, which list returns, and keeps a
// client for each. Neither argument may be nil.
func NewDirectory(list func(context.Context) ([]CellPresence, error), dial Dial) auction.Directory {
	return &directory{list: list, dial: dial}
}

type directory struct {
	list func(context.Context) ([]CellPresence, error)
	dial Dial

	mu      sync.Mutex
	clients map[string]dialled
}

type dialled struct {
	address string
	client  auction.CellClient
}

// Cells implements [auction.Directory]. A cell that cannot be dialled answers
// every call with the reason.
func (d *directory) Cells(ctx context.Context) ([]auction.Cell, error) {
	list, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	current := make(map[string]dialled, len(list))
	cells := make([]auction.Cell, 0, len(list))
	for _, p := range list {
		known, ok := d.clients[p.CellID]
		if !ok || known.address != p.Address {
			client, err := d.dial(p)
			if err == nil && client == nil {
				err = errors.New("Dial returned neither a client nor an error")
			}
			if err != nil {
				client = undialled{fmt.Errorf("dialling cell %q: %w", p.CellID, err)}
			}
			known = dialled{p.Address, client}
		}
		current[p.CellID] = known
		cells = append(cells, auction.Cell{ID: p.CellID, Client: known.client})
	}
	d.clients = current
	return cells, nil
}

// undialled is the client of a cell that could not be dialled.
type undialled struct{ err error }

func (u undialled) State(context.Context) (auction.CellState, error) {
	return auction.CellState{}, u.err
}

func (u undialled) Perform(context.Context, auction.Work) ([]auction.Rejection, error) {
	return nil, u.err
}

func (u undialled) StopLRP(context.Context, lrp.Key, lrp.InstanceKey) error { return u.err }
func (u undialled) CancelTask(context.Context, string, string) error        { return u.err }

// A CellWatch notices cells that come and go. Its methods may be called
// concurrently.
type CellWatch struct {
	store   storage.Reader
	changed func()

	mu   sync.Mutex
	seen []string
	ever bool
}

// NewCellWatch calls changed, unless it is nil, each time a Tick finds that
// cells have come or gone, except at the first. The store may not be nil.
func NewCellWatch(store storage.Reader, changed func()) *CellWatch {
	if changed == nil {
		changed = func() {}
	}
	return &CellWatch{store: store, changed: changed}
}

// Tick reads which cells are present, and returns which have come and gone
// since the Tick before.
func (w *CellWatch) Tick(ctx context.Context) (came, gone []string, err error) {
	var now []string
	for lease, err := range w.store.Leases(ctx, storage.CellLease) {
		if err != nil {
			return nil, nil, err
		}
		now = append(now, lease.Name)
	}
	w.mu.Lock()
	before, first := w.seen, !w.ever
	w.seen, w.ever = now, true
	w.mu.Unlock()
	if first {
		return now, nil, nil
	}
	came, gone = without(now, before), without(before, now)
	if len(came)+len(gone) > 0 {
		w.changed()
	}
	return came, gone, nil
}

// without lists the elements of a that are not in b. Both are in order.
func without(a, b []string) (list []string) {
	for _, s := range a {
		if _, found := slices.BinarySearch(b, s); !found {
			list = append(list, s)
		}
	}
	return list
}
