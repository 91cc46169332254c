//go:build !linux || !cgo || !(amd64 || arm64)

package libcontainer

import (
	"context"
	"fmt"
	"runtime"

	"github.com/diegosdk/diego/executor"
)

// Backend is an [executor.ContainerBackend] on systems that have containers. On
// this one, only Probe and Close may be called, and concurrently.
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
