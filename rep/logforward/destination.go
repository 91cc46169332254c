package logforward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
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
	// labels are those of containers that have written lately, by guid. Only run
	// uses them.
	labels map[string]rep.LogLabels
	// failing says that the last attempt has failed. Only run uses it.
	failing bool

	mu      sync.Mutex
	waiting []manager.LogLine
	bytes   int64
	dropped int64 // since a line has said so
}

func cost(l *manager.LogLine) int64 { return int64(len(l.Text)) + lineCost }

// add takes a line, and drops the oldest ones to make room.
func (d *destination) add(l manager.LogLine) {
	d.mu.Lock()
	d.waiting = append(d.waiting, l)
	d.bytes += cost(&l)
	dropped := int64(0)
	for d.bytes > d.forwarder.o.BufferBytes {
		d.pop()
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

// pop removes the oldest line, with the lock.
func (d *destination) pop() (l manager.LogLine) {
	l, d.waiting[0] = d.waiting[0], l // its memory is free before the slice's is
	d.waiting = d.waiting[1:]
	d.bytes -= cost(&l)
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
	if len(d.waiting) == 0 {
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
	for size := int64(0); len(d.waiting) > 0 && b.lines < maxBatch && size < maxBatchBytes; b.lines++ {
		l := d.pop()
		size += cost(&l)
		labels := d.labelsOf(&l)
		labels.Source, labels.Stream = l.Source[:min(len(l.Source), maxLabelBytes)], string(l.Stream)
		b.records = append(b.records, Record{Time: l.Time, CellID: f.o.CellID, Labels: labels, Text: l.Text})
	}
	return b
}

// maxLabels bounds the containers whose labels are remembered.
const maxLabels = 10000

const (
	// maxLabelBytes bounds each label, and maxTagBytes the names and texts of all
	// tags: each line is sent with them, and definitions may have megabytes.
	maxLabelBytes = 1 << 10
	maxTagBytes   = 4 << 10
)

// bounded returns labels whose texts are at most so long. Of tags, the first ones
// by name stay.
func bounded(l rep.LogLabels) rep.LogLabels {
	for _, label := range []*string{&l.LogGUID, &l.Domain, &l.InstanceGUID} {
		if len(*label) > maxLabelBytes {
			*label = strings.Clone((*label)[:maxLabelBytes]) // not to keep the rest in memory
		}
	}
	size := 0
	for _, name := range slices.Sorted(maps.Keys(l.Tags)) {
		if size += len(name) + len(l.Tags[name]); size > maxTagBytes {
			delete(l.Tags, name)
		}
	}
	return l
}

// labelsOf returns the labels of a line without its source and stream.
func (d *destination) labelsOf(l *manager.LogLine) rep.LogLabels {
	labels, known := d.labels[l.GUID]
	if !known {
		if len(d.labels) >= maxLabels {
			clear(d.labels) // nobody says which containers are gone
		}
		labels = bounded(rep.LabelsOf(l.GUID, l.Owner.LogGUID, l.Owner.MetricsGUID, l.Owner.Tags))
		d.labels[l.GUID] = labels
	}
	return labels
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
		if !d.send(ctx, late, b, log) {
			lost := b.lines + d.size()
			d.count("log_lines_dropped_total", lost)
			log.Warn("log lines were not forwarded before the end", "lines", lost)
			break
		}
	}
	if err := d.Sink.Close(); err != nil {
		log.Warn("a destination of log lines could not be closed", "err", err)
	}
}

// send sends a batch, as often as it takes, or counts it as dropped if the
// destination refuses it. It reports false if late ends before.
func (d *destination) send(ctx, late context.Context, b batch, log *slog.Logger) bool {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		attempt, cancel := context.WithTimeout(late, sendTimeout)
		err := d.Sink.Send(attempt, b.records)
		cancel()
		if err == nil {
			d.count("log_lines_forwarded_total", b.lines)
			if d.failing {
				log.Info("log lines are forwarded again")
			}
			d.failing = false
			return true
		}
		var refused *RefusedError
		isRefused := errors.As(err, &refused)
		switch { // not for each attempt
		case d.failing:
		case isRefused:
			log.Warn("log lines were refused and are dropped; is the address right?", "err", err)
		default:
			log.Warn("log lines cannot be forwarded; they wait in the buffer, and the oldest are dropped when it is full", "err", err)
		}
		d.failing = true
		if isRefused {
			lost := min(cmp.Or(max(0, refused.Lines), b.lines), b.lines)
			d.mu.Lock()
			if d.dropped += lost; lost == b.lines { // what was to say so is lost too
				d.dropped += b.dropped
			}
			d.mu.Unlock()
			d.count("log_lines_dropped_total", lost)
			d.count("log_lines_forwarded_total", b.lines-lost)
			return true
		}
		if !d.wait(ctx, late, pause) {
			return false
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
	timer := time.NewTimer(pause/2 + rand.N(pause)) // not all cells at once
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ended:
	case <-late.Done():
	}
	return late.Err() == nil
}

func (d *destination) size() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return int64(len(d.waiting))
}
