//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"os"
	"runtime"

	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // its C code joins namespaces before Go starts
)

// init takes over when libcontainer executes this binary to set a container
// up. Both conditions hold only then: the argument alone may be anybody's.
//
// Otherwise it keeps the first thread for main. In the daemon, libcontainer
// puts a thread into the mount namespace of each new container and ends it
// then; the first thread of a process cannot be ended. It would stay there for
// good: the container's mounts would never go, and all that the daemon reads
// below /proc/self would be of that container.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "init" && os.Getenv("_LIBCONTAINER_INITPIPE") != "" {
		libcontainer.Init() // does not return
	}
	runtime.LockOSThread()
}
