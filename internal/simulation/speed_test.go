package simulation_test

import (
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/simulation"
)

// BenchmarkHours plays one seed of all scenarios for each iteration, and says how
// many simulated hours of a fleet of four cells pass in a minute. Run it with
// GOMAXPROCS=1 for the hours per minute of one core.
func BenchmarkHours(b *testing.B) {
	var simulated time.Duration
	for n := range b.N {
		for _, s := range simulation.Scenarios() {
			for _, real := range []bool{false, true} {
				played, err := s.Play(b.Context(), simulation.History{Seed: uint64(n) + 1, Real: real}, nil)
				if err != nil {
					b.Fatal(err)
				}
				simulated += played.Simulated
			}
		}
	}
	b.ReportMetric(simulated.Hours()/b.Elapsed().Minutes(), "hours/min")
}
