// Package process is a backend of plain host processes, for laptops and for
// systems without containers. It needs no root.
//
// There is NO ISOLATION. What runs here sees the host's files, processes and
// network, as the user that the daemon runs as (see Options.SwitchUser), and
// no limit of memory, disk, processes or CPU is enforced: Probe lists every
// one of these as missing. Run only what you would run in your own shell.
//
// What it does keep: every process that Start starts is a session of its own,
// is killed with all its children, and leaves nothing behind after Delete. Each
// container has a directory that stands in for its root file system:
//
//   - Files, downloads and mounts (as symbolic links) are put below it.
//   - The absolute Path and Dir of a process are looked up below it first and
//     on the host second. Inside a running process an absolute path is the
//     host's; the variable DIEGO_CONTAINER_DIR says where the directory is.
//   - StreamIn, StreamOut and Files never leave it.
//
// Ports are ports of the host. A process that is to be reached on a container
// port listens on the host port that the container's mapping gives it, which
// its environment tells it (PORT).
//
// A process that runs costs the daemon three parked goroutines, or one if its
// output is discarded, and on Linux no thread.
//
// On Linux a container's processes are found by that same variable in their
// environment, so that those of a daemon that was killed are found again.
// Elsewhere only process groups are known: a child that makes itself a new
// session escapes, and after a crash of the daemon what still runs must be
// ended by hand. On Linux a child escapes only if it clears its environment
// and outlives its parents and all of its session that have kept theirs.
//
// On Linux, Signal, Delete and Usage of a container look at all processes of
// the host. One look serves all calls that wait for one, in all Backends of a
// daemon: to stop many containers together takes little more than to stop one.
package process
