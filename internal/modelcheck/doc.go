// Package modelcheck enumerates every history of small worlds: a process with two
// or three indices and definitions, two cells, and everything that may happen to
// a rollout. It finds the order of events that nobody has thought of, where
// package simulation finds the fault that nobody has thought of.
//
// Decisions are those of the code that users run: lrp.Step and the changes of
// lrp.Deployment, converge.PlanLRPs, lrp.Rollout, and the tables of package rep.
// Everything around them is reduced to what they look at: a state (state.go) has
// the deployment, the records, the containers of the cells and the calls that are
// late, and time passes in ticks. There are no goroutines, no store and no
// network.
//
// moves.go lists what may happen in a state. Most moves are free: a cell reports,
// convergence takes a step, a container starts, a tick passes. A disturbance is
// a fault or a wish of the consumer; a search (search.go) has all histories of any
// length with at most so many of them. properties.go has what must hold, and
// fair.go how a rollout ends once nothing disturbs it any more. A violation is
// told as a story (story.go).
package modelcheck
