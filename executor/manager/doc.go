// Package manager runs the containers of one cell: the shell around the state
// machine of [executor.Container] and an [executor.ContainerBackend].
//
// A container is reserved, which takes its resources; it is given its work
// and made; its recipe runs; it completes; and it stays, with its result and
// files, until somebody deletes it:
//
//	m, err := manager.New(ctx, manager.Options{Backend: backend, Dir: dir})
//	refusals := m.Reserve(manager.Reservation{GUID: guid, Resources: size})
//	err = m.Initialize(guid, manager.Work{RunInfo: info})
//	m.Stop(guid)
//	m.Delete(guid)
//
// Every method answers at once; what takes time is done by [Manager.Tick],
// one call of which carries out everything that is due now, or by
// [Manager.Run], which does the same with goroutines and timers until its
// context ends. [Manager.List] says how far things are, and a [Subscription]
// tells it when it happens.
//
// The parts: loop.go orders timers, outcomes and jobs; lifecycle.go takes a
// container from state to state; recipe.go runs what is in one; the step
// files are the actions; probe.go is health and readiness. All of these run
// under one lock and never wait. What waits is a job: a call of the backend or
// a transfer, in a bounded pool, whose outcome comes back to the loop. So an
// idle container costs memory and a timer, and no goroutine.
//
// The package knows nothing of LRPs and tasks, but for the tags that name an
// instance to its own processes.
package manager
