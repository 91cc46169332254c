package manager

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/diegosdk/diego/executor"
)

// A Measurement says what a container used when it was last measured. It is a plain
// value.
type Measurement struct {
	GUID string
	// Owner says what the container is for.
	Owner LogOwner
	// Resources are the container's limits.
	Resources executor.Resources
	// At is when it was measured.
	At time.Time
	executor.Usage
	// Cores is processor time for each unit of time, and the others are bytes for
	// each second, since the measurement before. At the first measurement they are
	// averages since the container was created.
	Cores, ReceivedPerSecond, SentPerSecond float64
}

const (
	// firstMeasurement is the time from the start of a container to its first
	// measurement, unless the next interval ends before.
	firstMeasurement = 3 * time.Second
	// measureTimeout bounds the measuring of one container.
	measureTimeout = 2 * time.Second
	// measureRest times what it took passes before a container is measured again. So
	// one with many files costs at most 0.5 % of a processor.
	measureRest = 200
	// atATime is how many containers are measured at once: the process backend then
	// looks at the host once for all of them.
	atATime = 32
)

// measure measures all containers that are due. It is called with the lock.
func (m *Manager) measure() {
	m.after(m.options.UsageInterval, m.measure)
	m.measureEach(func(e *entry) bool { return !m.options.Now().Before(e.measureAgain) })
}

// measureSoon measures containers that have started, once for all that start
// meanwhile. It is called with the lock.
func (m *Manager) measureSoon() {
	if m.options.UsageInterval <= firstMeasurement || m.measuringSoon {
		return
	}
	m.measuringSoon = true
	m.after(firstMeasurement, func() {
		m.measuringSoon = false
		if m.measuring {
			m.measureSoon()
			return
		}
		m.measureEach(func(e *entry) bool { return e.measurement == nil && e.measureAgain.IsZero() })
	})
}

// measureEach measures the containers that run and are wanted, unless others are
// being measured.
func (m *Manager) measureEach(wanted func(*entry) bool) {
	if m.measuring {
		return
	}
	var due []string
	for guid, e := range m.entries {
		if e.container.State == executor.Running && wanted(e) {
			due = append(due, guid)
		}
	}
	if len(due) == 0 {
		return
	}
	slices.Sort(due)
	m.measuring = true
	m.submit(measurePool, JobMeasure, "", func(ctx context.Context) func() {
		var outcomes sync.Map
		var all sync.WaitGroup
		places := make(chan struct{}, atATime)
		for _, guid := range due {
			places <- struct{}{}
			all.Go(func() {
				defer func() { <-places }()
				outcomes.Store(guid, m.measureOne(ctx, guid))
			})
		}
		all.Wait()
		return func() {
			m.measuring = false
			outcomes.Range(func(guid, outcome any) bool {
				if e := m.entries[guid.(string)]; e != nil {
					e.measured(outcome.(measured))
				}
				return true
			})
		}
	})
}

// measured is the outcome of measuring one container.
type measured struct {
	usage executor.Usage
	err   error
	at    time.Time
	took  time.Duration
}

func (m *Manager) measureOne(ctx context.Context, guid string) measured {
	ctx, cancel := context.WithTimeout(ctx, measureTimeout)
	defer cancel()
	began := m.options.Now()
	usage, err := m.options.Backend.Usage(ctx, guid)
	ended := m.options.Now()
	return measured{usage, err, ended, ended.Sub(began)}
}

// measured keeps an outcome. What cannot be measured now keeps its last figures.
func (e *entry) measured(o measured) {
	e.measureAgain = o.at.Add(measureRest * o.took)
	if o.err != nil {
		return
	}
	before := Measurement{At: e.createdAt} // everything counts from 0
	if e.measurement != nil {
		before = *e.measurement
	}
	rate := func(from, to int64, per time.Duration) float64 {
		if from < 0 || to < from || !o.at.After(before.At) {
			return executor.Unknown
		}
		return float64(to-from) / (float64(o.at.Sub(before.At)) / float64(per))
	}
	e.measurement = &Measurement{
		GUID: e.guid, Owner: ownerOf(e.container), Resources: e.container.Resources, At: o.at, Usage: o.usage,
		Cores:             rate(int64(before.CPU), int64(o.usage.CPU), 1),
		ReceivedPerSecond: rate(before.ReceivedBytes, o.usage.ReceivedBytes, time.Second),
		SentPerSecond:     rate(before.SentBytes, o.usage.SentBytes, time.Second),
	}
}

// Measurements returns the latest measurement of each RUNNING container,
// ordered by guid. There are none without Options.UsageInterval.
func (m *Manager) Measurements() []Measurement {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := []Measurement{}
	for _, e := range m.entries {
		if e.container.State == executor.Running && e.measurement != nil {
			list = append(list, *e.measurement)
		}
	}
	slices.SortFunc(list, func(a, b Measurement) int { return strings.Compare(a.GUID, b.GUID) })
	return list
}
