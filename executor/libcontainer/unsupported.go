//go:build !linux || !cgo || !(amd64 || arm64)

package libcontainer

import (
	"context"
	"fmt"
	"net/netip"
	"runtime"

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

// Backend exists only where containers do. Of a zero one, Probe and Close may
// be called.
type Backend struct{ executor.ContainerBackend }

var errUnsupported = fmt.Errorf("%w: real containers need Linux on amd64 or arm64 and a build with cgo (CGO_ENABLED=1 and a C compiler); this is %s/%s without one of them; use the process backend",
	executor.ErrUnsupported, runtime.GOOS, runtime.GOARCH)

// New fails: namespaces and cgroups are Linux's, and libcontainer needs cgo.
func New(Options) (*Backend, error) { return nil, errUnsupported }

// Probe fails as New does.
func (*Backend) Probe(context.Context) (executor.Host, error) {
	return executor.Host{Backend: "libcontainer"}, errUnsupported
}

// Close does nothing.
func (*Backend) Close() error { return nil }
