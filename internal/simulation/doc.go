// Package simulation runs a whole Diego in one goroutine and in virtual time:
// control planes over a store in memory or on SQLite, and cells. These are real ones, of a
// rep, a manager and a scripted backend, or the models of package memcell.
//
// A [World] puts them together and lets things go wrong between them, drawn
// from one seed: messages that are lost, answers that are lost, calls that
// come twice or late, cells that vanish, leaders that are paused, a store that
// falls back to an earlier moment. After every step it checks what must always
// hold; when all faults have ended, everything that is desired must come to run.
package simulation
