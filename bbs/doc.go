// Package bbs is the service that knows the desired and the actual state.
//
// [BBS] answers the calls: consumers say what they want (desired.go, tasks.go,
// domains.go), cells and the auctioneer report what they did (reports.go), and
// subscribers follow the log of events (events.go, tail.go). A repeated call is
// recognised by its request id (requestid.go).
//
// One process leads (leadership.go) and fences its commits (fence.go); the others
// are standbys (standby.go). The leader's [Duties] are the rest (duties.go): it
// carries out the effects of what was committed (outbox.go), follows what others
// have committed (follower.go), notifies consumers of completed tasks
// (callbacks.go), and compares records with the containers of cells
// (rollcall.go).
//
// Three things rest on leases in the store. One process leads because it renews the
// lease of the leader. A cell is present while its [Announcer] renews the cell's
// lease (presence.go). A [Lock] lets only one of several processes of your own act
// (locks.go); [HoldLock] acquires, renews and releases one (holdlock.go).
//
// The rules are not here: lrp.Step and task.Step decide, and this package
// loads, commits, and carries out.
//
// # Concurrent use
//
// The comments of interfaces, of function types and of types with methods that do
// work say whether goroutines may share them. All other types are plain values: any
// number of goroutines may use one while none changes it.
package bbs
