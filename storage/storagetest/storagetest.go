// Package storagetest is the contract of storage.Store as tests. Each case is
// named after the sentence of the contract that it checks.
//
// A store's own tests call
//
//   - [Run] for everything that one caller can see,
//   - [RunConcurrent] for what several see of one another,
//   - [RunMetamorphic] for random sequences of calls. The store must answer as
//     memstore does. A failure is reduced to the calls that matter.
//   - [RunCrash] for stores on disk. It kills a process that commits, and looks
//     at what that left behind.
//
// The package imports nothing but the standard library and this module.
//
// # Concurrent use
//
// The suite calls an [Open] and the functions of its [Harness] from the
// goroutine of the test, and the store from many. All other types are plain
// values: any number of goroutines may use one while none changes it.
package storagetest

import (
	"testing"
	"time"

	"github.com/diegosdk/diego/storage"
)

// A Harness is one store under test and what the suite may do to it.
type Harness struct {
	// Store is empty, and belongs to the case that has opened it. The suite
	// closes it.
	Store storage.Store
	// Advance moves the store's clock ahead, or back if d is negative. Nil means
	// that the clock is real: the suite then waits, a fraction of a second for
	// each case that needs it, and leaves out the cases that would take longer.
	Advance func(d time.Duration)
	// Corrupt damages a record of any kind, which exists, so that it cannot be
	// decoded; what it is found, filtered and compared by stays legible. Nil
	// leaves the cases about such records out.
	Corrupt func(t testing.TB, key storage.RecordKey)
	// Reopen closes the store and opens another on the same data. Nil means
	// that the data ends with the store.
	Reopen func(t testing.TB) storage.Store
	// Save remembers all that the store holds. fallBack puts it back to that
	// moment as the restoring of a backup does, follows what the store's
	// documentation says about that, and returns the store that is open then;
	// it may be called again. Nil leaves out the cases about what was lost.
	Save func(t testing.TB) (fallBack func(t testing.TB) storage.Store)
	// BoundsBytes says that Store follows Options.EventBytes. False leaves the
	// case about that out.
	BoundsBytes bool
}

// Options are what a case asks of the store that it opens.
type Options struct {
	// Events is how many of the newest events the log must keep at least. It
	// should drop others soon: at the latest when ten times as many are there
	// and the next batch is committed. 0 means as many as the suite commits,
	// which is less than 100,000.
	Events int
	// EventBytes is about how many bytes the encodings of the newest events may
	// take that the log keeps: at least half of it, and at most twice as much. The
	// newest event stays, however large it is. 0 means as many as the suite
	// commits, which is less than 16 MiB.
	EventBytes int64
}

// An Open makes a new, empty store. It calls t.Fatal if it cannot, and
// t.Cleanup for what closing the store leaves behind. It is called in the
// goroutine of the test.
type Open func(t testing.TB, o Options) Harness

// A testCase checks one sentence.
type testCase struct {
	sentence string
	options  Options
	// needs is the part of the Harness without which the case is left out.
	needs func(*Harness) bool
	check func(f *fixture)
}

// Run checks the contract as one caller sees it.
func Run(t *testing.T, open Open) {
	groups := []struct {
		subject string
		cases   []testCase
	}{
		{"reads", readCases},
		{"commits", commitCases},
		{"events", eventCases},
		{"gaps", gapCases},
		{"domains", domainCases},
		{"leases", leaseCases},
		{"corrupt records", corruptCases},
		{"contexts and closing", contextCases},
	}
	for _, g := range groups {
		t.Run(g.subject, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.sentence, func(t *testing.T) {
					f := newFixture(t, open, c.options)
					if c.needs != nil && !c.needs(&f.Harness) {
						t.Log("left out: the harness has no hook for it")
						return
					}
					c.check(f)
				})
			}
		})
	}
}

func needsAdvance(h *Harness) bool { return h.Advance != nil }
func needsCorrupt(h *Harness) bool { return h.Corrupt != nil }
func needsReopen(h *Harness) bool  { return h.Reopen != nil }
func needsBytes(h *Harness) bool   { return h.BoundsBytes }
