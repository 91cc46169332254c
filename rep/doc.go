// Package rep keeps the containers of one cell and the records about them in
// agreement.
//
// Tables decide what to do. A table has two situations, one of the container and
// one of its records, and a [Row] for each pair: the steps in order, how surprising
// the pair is, and why. In the situations, α is the container's own instance on
// this cell, and ω is any other holder of the record.
//
//   - [DecideLRP] is for LRPs on a cell that operates normally (000
//     §Harmonizing ActualLRPs with Container State: Rep).
//   - [DecideEvacuation] is for LRPs on a cell that shuts down (000
//     §Harmonizing During Evacuation).
//   - [DecideStop] is for an LRP that runs and is to be stopped.
//   - [DecideTask] is for tasks (000 §Harmonizing Tasks with Container State:
//     Rep). It serves a cell that shuts down too, because tasks never leave their
//     cell.
//
// [SituateContainer], [SituateLRP], [SituateTaskContainer] and [SituateTask]
// find the situations. docs/tables shows every row.
//
// A [Rep] carries out rows. It takes the steps of a row in order and stops at
// the first that fails; the next poll decides anew. Only a refusal by the BBS
// leads to another step: see [Step.DeleteWhenRefused]. What was read may be
// stale, so the Rep reads container and record again before it deletes a live
// container.
//
// # Concurrent use
//
// Functions may be called concurrently, and so may the methods of [Rep],
// [Executor], [BBS] and [Announcer]. All other types are plain values: any
// number of goroutines may use one while none changes it.
package rep

//go:generate go run ../internal/tabledocs/generate ../docs/tables ../docs/fields.md
