// Package simulation judges a policy, a filter, a scorer, a store or a cell of
// yours in a whole Diego: two control planes and a few cells, in one goroutine and
// in virtual time. Everything that goes wrong is drawn from a seed. Messages get
// lost, come twice or minutes late; cells and control planes are paused, started
// anew and cut off; instances crash; consumers scale, deploy, delete and cancel in
// the middle of it. [Checkers] judge every commit, every order to a cell and every
// answer. When all faults have ended, exactly what is desired has to run.
//
// What you do not bring is the simulation's own: a store in memory, model cells,
// the default policies. In a test, call [Run]:
//
//	func TestOurStoreKeepsItsPromises(t *testing.T) {
//		simulation.Run(t, simulation.Options{
//			Store: func(now func() time.Time) (storage.Store, error) { return ourstore.Open(t.TempDir(), now) },
//		})
//	}
//
// A failure names the checker, the sentence that does not hold, where the sentence
// comes from, the seed, and the command that plays the same history again. [Play]
// does the same for one seed without package testing.
//
// The suites storage/storagetest, rep/celltest and executor/backendtest check a
// part alone, sentence by sentence. Pass them first: their failures are easier to
// read. The simulation finds what comes only of many parts together.
//
// # Determinism
//
// The same seed and the same code give the same history. Your code keeps that
// promise if it takes the time and new guids only from what it is given, draws no
// random numbers, starts no goroutines, and lets nothing depend on the order of a
// map. A history that is not repeatable is still judged rightly, but its seed may
// not show the failure again.
//
// # What it cannot see
//
// There is one goroutine, so data races, deadlocks between goroutines and blocked
// calls stay unseen: run the suites under the race detector. Calls are Go calls,
// without HTTP and TLS. Nothing takes any time. Your store never fails by itself;
// the simulation loses commits and answers on the way to it. Your cell loses its
// containers whenever it starts anew; a start that finds them again is not played.
// Every history has the same mix of faults, less than docs/simulation.md lists for
// this module's own scenarios. Placement is judged by capacity, by evacuation and
// by your own [Check], never by taste.
//
// # Concurrent use
//
// Options, Check, CellOptions, World, Violation and Checker are values. The simulation calls what is in
// them from one goroutine at a time, the one that called Run or Play. Several goroutines
// may call Play at the same time if what their Options lead to allows that.
package simulation
