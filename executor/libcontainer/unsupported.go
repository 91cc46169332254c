//go:build !linux || !cgo || !(amd64 || arm64)

package libcontainer

import (
	"fmt"
	"net/netip"

	"github.com/diegosdk/diego/executor"
)

// Options configure a Backend; see the documentation on Linux.
type Options struct {
	Dir, ExternalIP     string
	FirstPort, LastPort uint16
	HostNetwork         bool
	Subnet              netip.Prefix
	ImageDirs           []string
	Preloaded           map[string]string
	CgroupParent        string
	MaxPIDs             int64
	AllowPrivileged     bool
}

// Backend exists only where containers do.
type Backend struct{ executor.ContainerBackend }

// New fails: namespaces and cgroups are Linux's, and libcontainer needs cgo.
func New(Options) (*Backend, error) {
	return nil, fmt.Errorf("%w: real containers need Linux on amd64 or arm64 and a build with cgo; use the process backend", executor.ErrUnsupported)
}

// Close does nothing.
func (*Backend) Close() error { return nil }
