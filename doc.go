// Package diego is the Diego SDK: the core of an orchestrator that keeps
// long-running processes (LRPs) and one-off tasks running on a fleet of cells.
//
// This package joins the parts over a store: [New] makes a [ControlPlane] of
//
//   - bbs.BBS, the interface to the desired and the actual state: consumers say
//     what they want, cells report what they did, subscribers follow the log of
//     events
//   - auction.Runner, which places work on cells
//   - converge.Converger, which repairs what got lost
//   - bbs.Leadership, which lets one of several control planes act, and
//     bbs.Duties, which carry out what was decided
//
// Each part has a method that does one step. [ControlPlane.Tick] is one step of
// all of them, and [ControlPlane.Run] adds the goroutines and timers. Package
// httpapi serves a control plane over HTTP, and localcell is a cell of the same
// process. To begin, copy examples/embed, a program with all of it.
// docs/operations.md lists the knobs and metrics.
//
// The rules are pure functions in these packages, which can be imported one by
// one:
//
//   - executor: what runs in a container, and how a container lives
//   - lrp: what should run and what does; Step decides every change
//   - task: the same for tasks, which run at most once
//   - auction: Place chooses the cells for a batch of work
//   - converge: what differs between desired and actual, as commands
//   - rep: what a cell does about its containers, as tables
//
// docs/architecture.md describes how they meet, and docs/api.md the calls over
// HTTP.
//
// # Concurrent use
//
// [ControlPlane] says which of its methods may be called concurrently. Options
// are plain values: any number of goroutines may use one while none changes it.
package diego
