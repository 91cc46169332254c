// Package rep keeps the containers of one cell and the records about them in
// agreement.
//
// Total tables decide what to do. Each folds everything that matters into two
// small situations and gives a [Row]: the steps in order, how surprising the
// pair is, and why. α is the container's own instance on this cell, ω any other
// holder.
//
//   - [DecideLRP] is for LRPs on a cell that operates normally (000
//     §Harmonizing ActualLRPs with Container State: Rep).
//   - [DecideEvacuation] is for LRPs on a cell that shuts down (000
//     §Harmonizing During Evacuation).
//   - [DecideStop] is for an LRP that runs and is to be stopped.
//   - [DecideTask] is for tasks in both cases (000 §Harmonizing Tasks with
//     Container State: Rep), because tasks never leave their cell.
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
