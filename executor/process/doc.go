// Package process is a backend of plain host processes, for laptops and for
// systems without containers. It needs no root.
//
// There is NO ISOLATION. A process sees the host's files, processes and network
// as the user that the daemon runs as (see [Options.SwitchUser]), and no limit
// of memory, disk, processes or CPU is enforced. Probe lists each of these as
// missing. Run only what you would run in your own shell.
//
// The backend does keep this promise: every process that Start starts leads a
// session of its own, is killed with all its children, and leaves nothing
// behind after Delete. Each container has a directory in place of a root file
// system:
//
//   - Files, downloads and mounts (as symbolic links) are put below it.
//   - The absolute Path and Dir of a process are looked up below it first and
//     on the host second. Inside a running process an absolute path is the
//     host's; the variable DIEGO_CONTAINER_DIR names the directory.
//   - StreamIn, StreamOut and Files never leave it.
//
// Ports are ports of the host. To be reached on a container port, a process
// listens on the host port that the port is mapped to; its environment names
// that port (PORT).
//
// A running process costs the daemon three parked goroutines, or one if its
// output is discarded. On Linux it costs no thread.
//
// On Linux, the backend finds a container's processes by that same variable in
// their environment, and so finds those of a daemon that was killed. A child
// escapes if it clears its environment and outlives its parents and everything
// in its session that has kept theirs, before a look has seen it among them. One
// that starts the next process in a session of its own and ends, without a
// pause, may be missed for some looks. On other systems the backend
// knows only process groups: a child that makes a session of its own escapes,
// and what still runs after a crash of the daemon must be ended by hand.
//
// On Linux, signals, Delete and Usage look at all processes of the host. One
// look serves all calls that wait for one, in all Backends of a daemon, so
// stopping many containers together takes little more than stopping one. A look
// waits for some 2 s in all for environments whose reading does not return, and
// goes on without them.
//
// # Concurrent use
//
// The methods of [Backend] may be called concurrently. [Options] are a plain
// value: any number of goroutines may use one while none changes it.
package process
