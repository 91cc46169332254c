//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"os"

	"github.com/opencontainers/runc/libcontainer"
	_ "github.com/opencontainers/runc/libcontainer/nsenter" // its C code joins namespaces before Go starts
)

// init takes over when libcontainer executes this binary to set a container
// up. Both conditions hold only then: the argument alone may be anybody's.
func init() {
	if len(os.Args) > 1 && os.Args[1] == "init" && os.Getenv("_LIBCONTAINER_INITPIPE") != "" {
		libcontainer.Init() // does not return
	}
}
