// Package rep brings the containers of one cell and the records about them
// into harmony.
//
// What to do is decided by three total tables. Each folds everything that
// matters into two small situations and gives a [Row]: the steps in order, how
// surprising the pair is, and why. α is the container's own instance on this
// cell, ω any other holder.
//
//   - [DecideLRP] is for LRPs on a cell that operates normally (000
//     §Harmonizing ActualLRPs with Container State: Rep),
//   - [DecideEvacuation] for LRPs on a cell that shuts down (000 §Harmonizing
//     During Evacuation),
//   - [DecideStop] for an LRP that runs and is to be stopped,
//   - [DecideTask] for tasks in both cases (000 §Harmonizing Tasks with
//     Container State: Rep), as tasks never leave their cell.
//
// [SituateContainer], [SituateLRP], [SituateTaskContainer] and [SituateTask]
// find the situations. docs/tables shows every row.
//
// Whoever carries out a row takes its steps in order and stops at the first
// that fails; the next poll decides anew. Only an answer of the BBS that
// refuses a step says more: see [Step.DeleteWhenRefused]. What was read may be
// stale, so container and record are read again before a container that lives
// is deleted.
package rep

//go:generate go run ../internal/tabledocs/generate ../docs/tables
