// Package manager runs the containers of one cell. It drives the state machine
// of [executor.Container] and an [executor.ContainerBackend].
//
// A container is reserved, which takes its resources. It is given its work and
// made, its recipe runs, and it completes. It then stays, with its result and
// files, until it is deleted:
//
//	m, err := manager.New(ctx, manager.Options{Backend: backend, Dir: dir})
//	refusals := m.Reserve(manager.Reservation{GUID: guid, Resources: size})
//	err = m.Initialize(guid, manager.Work{RunInfo: info})
//	m.Stop(guid)
//	m.Delete(guid)
//
// These methods return at once. [Manager.Tick] does what takes time: one call
// carries out everything that is due now. [Manager.Run] does the same with
// goroutines and timers until its context ends. [Manager.List] returns the
// state of every container, and a [Subscription] delivers the changes.
//
// In the source, loop.go orders timers and outcomes; pools.go says which job is
// next; lifecycle.go takes a container from state to state; recipe.go runs its
// actions, which the step files hold; probe.go checks health and readiness. All of
// these run under one lock and never wait. A call of the backend or a transfer is a job in a
// bounded pool, and its outcome comes back to the loop. So an idle container
// costs memory and a timer, but no goroutine.
//
// The package knows LRPs and tasks only by the tags that name an instance to
// its own processes.
//
// # Concurrent use
//
// [Manager] says which of its methods may be called concurrently, and so do
// [Log], [Subscription] and [VolumeDriver]. All other types are plain values:
// any number of goroutines may use one while none changes it.
package manager
