// Package executor is the vocabulary of a cell: what runs in a container, and
// how a container lives.
//
// [RunInfo] says what runs: a root file system, an [Action] and everything
// around them. An Action is a recipe: a tree of processes, transfers and
// combinators such as [SerialAction] and [TimeoutAction]. [Resources] say how
// much of a cell the container takes. A [CheckDefinition] says when it is
// healthy and when it is ready for traffic, and an [EgressRule] what it may
// reach.
//
// A [Container] describes one container at one moment (000 §Container State).
// Its methods are the transitions between its five states; each returns the
// next Container:
//
//	c, err := executor.Reserve(guid, size, tags, now) // RESERVED: its resources are taken
//	c, err = c.Initialize(runInfo, nil, now)          // INITIALIZING: it is being made
//	c, err = c.Create(addresses, now)                 // CREATED: its recipe starts
//	c, err = c.Run(now)                               // RUNNING: it is healthy
//	c, err = c.Complete(executor.Stopped(), now)      // COMPLETED: its RunResult says how
//
// [Transitions] lists every legal change and [CanTransition] checks one; any
// other change is a [TransitionError]. A [RunResult] is one of five:
// [Succeeded], [Failed], [Stopped], [NeverBegan] and [Expired] (000
// §RunResult). [Container.Event] returns the event that a change makes (000
// §Container Events).
//
// A [ContainerBackend] makes real containers. The packages below this one
// implement it.
//
// Records have a Validate method that reports to a [Validator]. It validates the
// records inside too, and reports each wrong field with its path, its value and
// its limit:
//
//	var v executor.Validator
//	runInfo.Validate(v.In("run_info"))
//	err := v.Err() // nil, or a *ValidationError, which wraps ErrInvalid
//
// Sizes are in mebibytes (MB) or bytes. Times in JSON are in milliseconds (Ms)
// or RFC 3339. The JSON of every record is stable: releases only add members.
//
// The package is pure: it holds data, rules and JSON, and takes the time as an
// argument.
//
// # Concurrent use
//
// Functions may be called concurrently. Types are plain values unless they say
// otherwise: any number of goroutines may use one while none changes it, and
// nothing here changes a value after it was passed on.
package executor
