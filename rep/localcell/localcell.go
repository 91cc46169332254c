// Package localcell joins the parts of a cell in one process: the rep, which
// decides, and the manager of its containers.
//
// # Concurrent use
//
// All methods of [Cell] may be called concurrently.
package localcell

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

// A Cell is a cell of this process, to be served by httpapi.NewHandler or dialled
// without a network. New makes one; nobody changes its fields. All methods may be
// called at the same time. The logs of one that New has not made have the labels that
// their containers began with.
type Cell struct {
	*rep.Rep
	// Manager has the rep's containers.
	Manager *manager.Manager

	lookups *lookups // nil in a cell that New has not made
}

// lookups are those in progress, by the guid of the container.
type lookups struct {
	mu  sync.Mutex
	now map[string]*lookup
}

// A lookup asks the BBS for the labels of a container's log. Readers of the same log
// that come meanwhile wait for its answer.
type lookup struct {
	done   chan struct{}
	labels rep.LogLabels
}

// maxLookups is how many there are at a time. Otherwise those who only read logs could
// keep the cell's own reports from the BBS. A reader beyond them gets the labels that
// the container began with.
const maxLookups = 16

var (
	_ rep.API                 = (*Cell)(nil)
	_ auction.InventoryClient = (*Cell)(nil)
	_ rep.LogDomains          = (*Cell)(nil)
	_ rep.Cordoner            = (*Cell)(nil)
	_ rep.Meter               = (*Cell)(nil)
	_ rep.Sessions            = (*Cell)(nil)
	_ rep.SessionAuditor      = (*Cell)(nil)
)

// New makes a cell of a manager and of a rep over it. The manager is o.Executor, and
// o.RefusedFields are the manager's; leave both out. New fails with an
// *executor.ValidationError if the manager is nil, if o.Executor is something else,
// or if an option is missing or outside its limits. It starts nothing: see Run.
func New(m *manager.Manager, o rep.Options) (*Cell, error) {
	var v executor.Validator
	v.Check(m != nil, "manager", "", "not nil")
	v.Check(o.Executor == nil || o.Executor == rep.Executor(m), "executor", "", "left out: the manager is the rep's executor")
	if err := v.Err(); err != nil {
		return nil, err
	}
	o.Executor, o.RefusedFields = m, m.RefusedFields()
	r, err := rep.New(o)
	if err != nil {
		return nil, err
	}
	return &Cell{Rep: r, Manager: m, lookups: &lookups{now: map[string]*lookup{}}}, nil
}

// Run runs the rep and its manager until ctx ends or an evacuation is over. It
// then deletes the containers, because nobody would look after them. It returns
// the error of the rep's Run. If containers are left on the host, it returns
// another error, which says so and does not wrap ctx's.
func (c *Cell) Run(ctx context.Context) error {
	stop := parallel.During(context.WithoutCancel(ctx), c.Manager.Run)
	err := c.Rep.Run(ctx)
	stop()
	late, cancel := context.WithTimeout(context.WithoutCancel(ctx), clearTime)
	defer cancel()
	left := c.Manager.Clear(late)
	if left == nil {
		return err
	}
	left = fmt.Errorf("containers are left on the host until a cell starts in the same directory: %w", left)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return left
	}
	return errors.Join(err, left)
}

// clearTime is how long the containers may take to be deleted.
const clearTime = 30 * time.Second

// Ready is for a probe such as /readyz (httpapi.HandlerOptions.Ready): a cell
// is ready while it is present and takes work.
func (c *Cell) Ready(ctx context.Context) bbs.Readiness {
	r := bbs.Readiness{Role: "cell"}
	absent := c.Rep.Absent()
	switch state, err := c.Rep.State(ctx); {
	case err != nil:
		r.Why = err.Error()
	case state.Evacuating:
		r.Why = string(auction.Evacuating)
	case state.Cordoned:
		r.Why = string(auction.Cordoned)
	case state.Unhealthy:
		r.Why = string(auction.Unhealthy)
	case absent != nil:
		r.Why = "not present: " + absent.Error()
	case state.Settling:
		r.Why = string(auction.Settling)
	default:
		r.Ready = true
	}
	return r
}

// Evacuation implements [rep.API].
func (c *Cell) Evacuation(context.Context) (rep.EvacuationStatus, error) {
	s := rep.EvacuationStatus{Containers: len(c.Manager.List()), Waiting: c.Rep.Waiting()}
	s.BeganAt, s.Deadline, s.Done = c.Rep.Evacuation()
	s.Evacuating = !s.BeganAt.IsZero()
	return s, nil
}

// Containers implements [rep.API].
func (c *Cell) Containers(context.Context) ([]executor.Container, error) {
	list := c.Manager.List()
	for i := range list {
		list[i].RunInfo = nil
	}
	return list, nil
}

// Usages implements [rep.Meter]. There are none unless the manager has a
// UsageInterval.
func (c *Cell) Usages(context.Context) ([]rep.ContainerUsage, error) {
	list := []rep.ContainerUsage{}
	for _, m := range c.Manager.Measurements() {
		list = append(list, usageOf(m))
	}
	return list, nil
}

func usageOf(m manager.Measurement) rep.ContainerUsage {
	u := rep.UsageOf(m.GUID, m.Owner.MetricsGUID, m.Owner.Tags, m.Resources, m.Usage)
	u.MeasuredAt, u.Cores, u.ReceivedPerSecond, u.SentPerSecond = m.At, m.Cores, m.ReceivedPerSecond, m.SentPerSecond
	return u
}

// LogDomain implements [rep.LogDomains].
func (c *Cell) LogDomain(_ context.Context, containerGUID string) (string, error) {
	owner, err := c.Manager.LogOwner(containerGUID)
	return owner.Tags[executor.TagDomain], notFound(err)
}

// notFound adds the error by which callers know that there is nothing to read.
func notFound(err error) error {
	if errors.Is(err, manager.ErrNotFound) {
		return errors.Join(storage.ErrNotFound, err)
	}
	return err
}

// labels are those of a container's log, from the BBS where it may be asked.
func (c *Cell) labels(ctx context.Context, guid string, owner manager.LogOwner) rep.LogLabels {
	known := rep.LabelsOf(guid, owner.LogGUID, owner.MetricsGUID, owner.Tags)
	all := c.lookups
	if all == nil {
		return known
	}
	all.mu.Lock()
	l, asked := all.now[guid]
	switch {
	case asked:
	case len(all.now) == maxLookups:
		all.mu.Unlock()
		return known
	default:
		l = &lookup{done: make(chan struct{})}
		all.now[guid] = l
		go func() { // the end of this reader does not end it for the others
			l.labels = c.Rep.LogLabels(context.WithoutCancel(ctx), guid, owner.LogGUID, owner.MetricsGUID, owner.Tags)
			all.mu.Lock()
			delete(all.now, guid)
			all.mu.Unlock()
			close(l.done)
		}()
	}
	all.mu.Unlock()
	select {
	case <-l.done:
		return l.labels
	case <-ctx.Done():
		return known
	}
}

// logPiece is how much of a log is passed on at once, at most. A server holds a piece
// some four times for each reader that does not take it: as it was read, as the piece, and
// as JSON. Larger pieces are not much faster.
const logPiece = 8 << 10

// Logs implements [rep.API].
func (c *Cell) Logs(ctx context.Context, r rep.LogRequest) iter.Seq2[rep.LogChunk, error] {
	stream := manager.Stream(r.Stream)
	stream = cmp.Or(stream, manager.Stdout)
	return func(yield func(rep.LogChunk, error) bool) {
		var v executor.Validator
		v.Check(stream == manager.Stdout || stream == manager.Stderr || stream == manager.Health, "stream", r.Stream, "stdout, stderr or health")
		v.Check(r.From >= 0, "from", r.From, "at least 0")
		if err := v.Err(); err != nil {
			yield(rep.LogChunk{}, err)
			return
		}
		log, err := c.Manager.Log(ctx, r.ContainerGUID, stream, r.From, r.Follow)
		if err != nil {
			yield(rep.LogChunk{}, notFound(err))
			return
		}
		defer log.Close()
		owner := log.Owner()
		labels := c.labels(ctx, r.ContainerGUID, owner)
		labels.Stream = string(stream)
		buffer := make([]byte, logPiece)
		for first := true; ; {
			n, err := log.Read(buffer)
			if n > 0 {
				chunk := rep.LogChunk{Next: log.Offset(), Data: append([]byte(nil), buffer[:n]...)}
				if first || labels.Source != log.Source() {
					first, labels.Source = false, log.Source()
					now := labels
					chunk.Labels = &now
				}
				if !yield(chunk, nil) {
					return
				}
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(rep.LogChunk{}, err)
				return
			}
		}
	}
}
