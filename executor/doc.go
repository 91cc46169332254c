// Package executor is the vocabulary of a cell: what runs in a container and
// how a container lives.
//
// [Action] is the recipe, a tree of runs, transfers and combinators. [RunInfo]
// is everything a container needs besides its size, [Resources] is its size.
// [Container] is one container with its five states; [Transition] is the table
// of legal state changes and [RunResult] says how it ended (000 §Container
// State, §RunResult). A [CheckDefinition] says when it is healthy.
//
// The package is pure: it holds data, validation and stable JSON. What really
// creates processes lives in the packages below it.
package executor
