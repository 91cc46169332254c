package logforward

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/rep"
)

const (
	// lineCost is what a line counts besides its text.
	lineCost = 200
	// maxBatch and maxBatchBytes bound what is sent at once.
	maxBatch      = 500
	maxBatchBytes = 1 << 20
	// maxHalvings is how often a batch is halved to find what the destination
	// refuses: one line among 500 takes nine.
	maxHalvings = 32
	// sendTimeout bounds one attempt.
	sendTimeout = 10 * time.Second
	// After a failure, the first pause is about minPause, and the next ones are
	// longer, up to about maxPause.
	minPause, maxPause = 100 * time.Millisecond, 30 * time.Second
)

// A destination has the lines that wait for it.
type destination struct {
	Destination
	forwarder *Forwarder
	news      chan struct{} // has one when a line has come
	// failing says that the last attempt has failed. Only run uses it.
	failing bool

	mu      sync.Mutex
	waiting queues            // a heap; none is empty
	by      map[string]*queue // the same, by container
	lines   int64             // of all queues
	came    int64             // how many lines have come
	of      map[*labels]int   // how many lines wait that have them
	bytes   int64             // of the lines, and of all labels once
	dropped int64             // since a line has said so
}

// A queue has the lines of one container that wait.
type queue struct {
	guid  string
	lines []line
	bytes int64 // as in destination
	at    int   // in destination.waiting
}

// queues are a heap. The queue with the oldest line is first.
type queues []*queue

func (q queues) Len() int           { return len(q) }
func (q queues) Less(i, j int) bool { return q[i].lines[0].number < q[j].lines[0].number }
func (q queues) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at, q[j].at = i, j
}

// Push implements [heap.Interface].
func (q *queues) Push(x any) { *q = append(*q, x.(*queue)) }

// Pop implements [heap.Interface].
func (q *queues) Pop() any {
	end := len(*q) - 1
	last := (*q)[end]
	(*q)[end], *q = nil, (*q)[:end]
	return last
}

// A line is one that waits. All lines of one source share their labels.
type line struct {
	at     time.Time
	stream manager.Stream
	text   []byte
	labels *labels
	number int64 // among those that have come
}

func (l *line) cost() int64 { return int64(len(l.text)) + lineCost }

// add takes a line of a container, and drops others to make room.
func (d *destination) add(guid string, l line) {
	d.mu.Lock()
	d.came++
	l.number = d.came
	q := d.by[guid]
	if q == nil {
		q = &queue{guid: guid, lines: []line{l}, at: len(d.waiting)}
		d.by[guid] = q
		heap.Push(&d.waiting, q)
	} else {
		q.lines = append(q.lines, l)
	}
	d.lines++
	cost := l.cost()
	if d.of[l.labels]++; d.of[l.labels] == 1 {
		cost += l.labels.bytes
	}
	q.bytes += cost
	d.bytes += cost
	dropped := int64(0)
	for d.bytes > d.forwarder.o.BufferBytes {
		d.pop(d.toDrop())
		dropped++
	}
	d.dropped += dropped
	d.mu.Unlock()
	if dropped > 0 {
		d.count("log_lines_dropped_total", dropped)
	}
	select {
	case d.news <- struct{}{}:
	default:
	}
}

// manyQueues are more than the containers of a cell. Those that have ended may leave
// thousands with few lines, and no line is to wait until all are looked at.
const manyQueues = 1024

// toDrop returns the queue whose oldest line is to be dropped, with the lock. It is the
// one with the oldest line of those that have at least half of the average of bytes. So a
// container that floods the destination loses its own lines, not those of others.
func (d *destination) toDrop() *queue {
	found, least := d.waiting[0], d.bytes/int64(2*len(d.waiting))
	if found.bytes >= least || len(d.waiting) > manyQueues {
		return found
	}
	found = nil // there is another one, because not all have less than the average
	for _, q := range d.waiting {
		if q.bytes >= least && (found == nil || q.lines[0].number < found.lines[0].number) {
			found = q
		}
	}
	return found
}

// pop removes the oldest line of a queue, with the lock.
func (d *destination) pop(q *queue) (l line) {
	l, q.lines[0] = q.lines[0], l // its memory is free before the slice's is
	q.lines = q.lines[1:]
	d.lines--
	cost := l.cost()
	if d.of[l.labels]--; d.of[l.labels] == 0 {
		cost += l.labels.bytes
		delete(d.of, l.labels)
	}
	q.bytes -= cost
	d.bytes -= cost
	if len(q.lines) > 0 {
		heap.Fix(&d.waiting, q.at)
		return l
	}
	heap.Remove(&d.waiting, q.at)
	delete(d.by, q.guid)
	return l
}

func (d *destination) count(figure string, n int64) {
	d.forwarder.o.Metrics.Count(figure, n, auction.Label{Name: "destination", Value: d.Name})
}

// A batch is what is sent at once.
type batch struct {
	// records are lines, and before them what says how many were dropped.
	records        []Record
	lines, dropped int64
}

// take removes a batch from the buffer. It has no lines if none wait.
func (d *destination) take() batch {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lines == 0 {
		return batch{}
	}
	f := d.forwarder
	b := batch{dropped: d.dropped}
	if d.dropped > 0 {
		b.records = append(b.records, Record{
			Time: f.o.Now(), CellID: f.o.CellID, Labels: rep.LogLabels{Source: "diego", Stream: string(manager.Stderr)},
			Text: fmt.Appendf(nil, "[%d lines of containers of cell %s dropped: %s did not take them]", d.dropped, f.o.CellID, d.Name),
		})
		d.dropped = 0
	}
	for size := int64(0); d.lines > 0 && b.lines < maxBatch && size < maxBatchBytes; b.lines++ {
		l := d.pop(d.waiting[0])
		size += l.cost()
		labels := l.labels.LogLabels
		labels.Stream = string(l.stream)
		b.records = append(b.records, Record{Time: l.at, CellID: f.o.CellID, Labels: labels, Text: l.text})
	}
	return b
}

// halves are the first and the second half of a batch of several records.
func (b batch) halves() [2]batch {
	middle := len(b.records) / 2
	first, second := batch{records: b.records[:middle], dropped: b.dropped}, batch{records: b.records[middle:]}
	second.lines = int64(len(second.records))
	first.lines = b.lines - second.lines
	return [2]batch{first, second}
}

// run sends until ctx ends, and what is left then until late ends.
func (d *destination) run(ctx, late context.Context) {
	log := d.forwarder.o.Logger.With("destination", d.Name)
	for {
		b := d.take()
		if b.lines == 0 && ctx.Err() != nil {
			break
		}
		if b.lines == 0 {
			select {
			case <-d.news:
			case <-ctx.Done():
			}
			continue
		}
		if unsent := d.send(ctx, late, b, log); unsent > 0 {
			lost := unsent + d.size()
			d.count("log_lines_dropped_total", lost)
			log.Warn("log lines were not forwarded before the end", "lines", lost)
			break
		}
	}
	if err := d.Sink.Close(); err != nil {
		log.Warn("a destination of log lines could not be closed", "err", err)
	}
}

// send sends a batch. What the destination refuses is counted as dropped; if it
// does not say which lines it refuses, the batch is halved to find them. The
// result is how many lines are left when late ends before.
func (d *destination) send(ctx, late context.Context, b batch, log *slog.Logger) (unsent int64) {
	halvings, refused := 0, false
	for parts := []batch{b}; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		refusal, sent := d.attempt(ctx, late, part, log)
		if !sent {
			for _, left := range append(parts, part) {
				unsent += left.lines
			}
			return unsent
		}
		if refusal == nil {
			d.count("log_lines_forwarded_total", part.lines)
			continue
		}
		if refusal.Whole && len(part.records) > 1 && halvings < maxHalvings {
			halvings++
			halves := part.halves()
			parts = append(halves[:], parts...)
			continue
		}
		if refused = true; !d.failing { // not for each attempt
			d.failing = true
			log.Warn("log lines were refused and are dropped; is the address right?", "err", refusal)
		}
		lost := min(cmp.Or(max(0, refusal.Lines), part.lines), part.lines)
		d.mu.Lock()
		if d.dropped += lost; lost == part.lines && lost > 0 { // what was to say so is lost too; refused alone, it is not said again
			d.dropped += part.dropped
		}
		d.mu.Unlock()
		d.count("log_lines_dropped_total", lost)
		d.count("log_lines_forwarded_total", part.lines-lost)
	}
	if d.failing && !refused {
		d.failing = false
		log.Info("log lines are forwarded again")
	}
	return 0
}

// attempt sends a part of a batch, as often as it takes until the destination has
// it or refuses it. It reports false if late ends before.
func (d *destination) attempt(ctx, late context.Context, b batch, log *slog.Logger) (refused *RefusedError, sent bool) {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		attempt, cancel := context.WithTimeout(late, sendTimeout)
		err := d.Sink.Send(attempt, b.records)
		cancel()
		if err == nil || errors.As(err, &refused) {
			return refused, true
		}
		if !d.failing {
			d.failing = true
			log.Warn("log lines cannot be forwarded; they wait in the buffer, and old ones are dropped when it is full", "err", err)
		}
		if !d.wait(ctx, late, pause) {
			return nil, false
		}
	}
}

// wait waits between two attempts, and not for long once ctx has ended. It
// reports false if late has.
func (d *destination) wait(ctx, late context.Context, pause time.Duration) bool {
	ended := ctx.Done()
	if ctx.Err() != nil {
		pause, ended = minPause, nil
	}
	select {
	case <-time.After(pause/2 + rand.N(pause)): // not all cells at once
	case <-ended:
	case <-late.Done():
	}
	return late.Err() == nil
}

func (d *destination) size() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lines
}
