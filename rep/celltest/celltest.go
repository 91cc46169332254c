// Package celltest is the contract of a cell as tests: what an
// [auction.CellClient] answers, and what it reports to the BBS, in which order,
// and after which errors. docs/cell-protocol.md is the same contract as prose.
//
// A cell's own test is
//
//	func TestCell(t *testing.T) {
//		celltest.Run(t, func(t testing.TB, o celltest.Options) celltest.Harness {
//			cell := newCell(t, o.CellID, o.BBS)
//			return celltest.Harness{Cell: cell, RunInfo: sleep, End: cell.end, Begun: cell.begun, Evacuate: cell.Evacuate, Pass: time.Sleep}
//		})
//	}
//
// Each case is named after the sentence that it checks. The suite plays the rest
// of the system: the control plane that hands out work, a BBS with the real
// rules, another cell, and a network that loses messages.
//
// # Concurrent use
//
// The suite calls an [Open], the functions of its [Harness] and the cell from the
// goroutine of the test; only Harness.Begun may be called concurrently. The BBS
// that it gives to the cell may be called concurrently. All other types are plain
// values: any number of goroutines may use one while none changes it.
package celltest

import (
	"context"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
)

// Options say which cell a case needs.
type Options struct {
	// CellID is the cell's id.
	CellID string
	// BBS takes the cell's reports. It is a whole BBS so that a harness can serve
	// it over HTTP; the cell uses the part that is rep.BBS.
	BBS bbs.API
	// StartsIn is how long the cell must take to start an instance, at least. 0
	// means that it need not take any time.
	StartsIn time.Duration
}

// A Harness is one cell under test and what the suite may do to it. All fields
// are required unless they say otherwise.
type Harness struct {
	// Cell is the cell as the control plane reaches it. It is empty and has room for
	// three instances with 64 MiB of memory and 64 MiB of disk each. If it is an
	// auction.InventoryClient or a rep.Cordoner too, the suite checks that.
	Cell auction.CellClient
	// RunInfo is work that runs until End or the cell ends it.
	RunInfo executor.RunInfo
	// End makes the work of an instance or task end by itself: as a failure, or
	// well if failed is false. It does not tell the cell.
	End func(t testing.TB, instanceGUID string, failed bool)
	// Begun is how often the work of an instance or task has begun. It may be
	// called while the cell waits for an answer of the BBS.
	Begun func(instanceGUID string) int
	// Evacuate tells the cell to empty itself. It returns at once.
	Evacuate func(ctx context.Context) error
	// Pass lets d pass on the cell's clock, while the cell does what is due. For a
	// cell that works by itself in real time it is time.Sleep, and the suite takes
	// some minutes.
	Pass func(d time.Duration)
	// Now is the cell's clock (default time.Now).
	Now func() time.Time
	// ReservationExpiry is how long a reservation of the cell waits for its work to
	// begin (default executor.DefaultReservationExpiry).
	ReservationExpiry time.Duration
}

// An Open makes a cell for one case. It calls t.Fatal if it cannot, and t.Cleanup
// to end the cell. It is called in the goroutine of the test.
type Open func(t testing.TB, o Options) Harness

// A testCase checks one sentence.
type testCase struct {
	sentence string
	startsIn time.Duration
	check    func(f *fixture)
}

// groups are the cases by what they are about.
var groups = []struct {
	subject string
	cases   []testCase
}{
	{"answers", answerCases},
	{"instances", instanceCases},
	{"tasks", taskCases},
	{"evacuation", evacuationCases},
}

// Run checks the contract. Every case gets a cell of its own.
func Run(t *testing.T, open Open) {
	for _, g := range groups {
		t.Run(g.subject, func(t *testing.T) {
			for _, c := range g.cases {
				t.Run(c.sentence, func(t *testing.T) {
					c.check(newFixture(t, open, c))
				})
			}
		})
	}
}
