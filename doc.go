// Package diego is the root of the Diego SDK: the core of an orchestrator that
// keeps long-running processes (LRPs) and one-off tasks running on a fleet of
// cells. Its rules are pure functions, which live in the packages below and
// can be imported one by one:
//
//   - executor: what runs in a container, and how a container lives
//   - lrp: what should run and what does; Step decides every change of it
//   - task: the same for tasks, which run at most once
//   - auction: Place chooses the cells for a batch of work
//   - converge: what differs between desired and actual, as commands
//   - rep: what a cell does about its containers, as tables
//
// docs/architecture.md tells how they meet.
package diego
