// Package diego is the Diego SDK: the core of an orchestrator that keeps
// long-running processes (LRPs) and one-off tasks running on a fleet of cells.
//
// This package joins the parts over a store: [New] makes a [ControlPlane] of
//
//   - bbs.BBS, the interface to all that is desired and all that is: consumers
//     say what they want, cells report what they did, subscribers follow the
//     log of events
//   - auction.Runner, which places work on cells
//   - converge.Converger, which mends what got lost
//   - bbs.Leadership, which lets one of several control planes act, and
//     bbs.Leader, which carries out what was decided
//
// Each part does one step when it is told to; [ControlPlane.Tick] is one step
// of all of them, and [ControlPlane.Run] adds the goroutines and timers.
// Package httpapi serves a control plane over HTTP, and localcell is a cell of
// the same process. examples/embed is a program with all of it, to begin with.
// docs/operations.md lists the knobs and figures.
//
// The rules are pure functions, which live in the packages below and can be
// imported one by one:
//
//   - executor: what runs in a container, and how a container lives
//   - lrp: what should run and what does; Step decides every change of it
//   - task: the same for tasks, which run at most once
//   - auction: Place chooses the cells for a batch of work
//   - converge: what differs between desired and actual, as commands
//   - rep: what a cell does about its containers, as tables
//
// docs/architecture.md tells how they meet, and docs/api.md what can be asked
// over HTTP.
package diego
