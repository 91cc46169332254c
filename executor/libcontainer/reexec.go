//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"os"
	"runtime"

	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // its C code joins namespaces before Go starts
	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
)

// init takes over when libcontainer executes this binary to set a container
// up. Both conditions hold only then: the argument alone may be anybody's.
//
// What libcontainer has set up waits in the end for the daemon to let it go on,
// and would wait for good if the daemon were killed then. So it watches the
// daemon as the first process does that it is going to be. A parent-death
// signal does not do: libcontainer forks twice, which clears it.
//
// Otherwise it keeps the first thread for main. In the daemon, libcontainer
// puts a thread into the mount namespace of each new container and ends it
// then; the first thread of a process cannot be ended. It would stay there for
// good: the container's mounts would never go, and all that the daemon reads
// below /proc/self would be of that container.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "init" && os.Getenv("_LIBCONTAINER_INITPIPE") != "" {
		if pid1.IsFirst() { // and not of somebody else's container
			go func() {
				pid1.AwaitEnd()
				unix.Exit(1)
			}()
		}
		unix.Umask(ids.Umask) // it makes the targets of mounts
		libcontainer.Init()   // does not return
	}
	runtime.LockOSThread()
}
