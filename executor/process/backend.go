//go:build unix

package process

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/guids"
	"github.com/diegosdk/diego/executor/internal/hostport"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// The variable of every process that holds its container's directory.
const containerDirVar = "DIEGO_CONTAINER_DIR"

// Backend is an [executor.ContainerBackend]. Its methods may be called
// concurrently.
type Backend struct {
	options Options
	hurry   tenant.Hurry

	mu         sync.Mutex
	containers map[string]*container
	ports      *hostport.Range
}

var (
	_ executor.ContainerBackend = (*Backend)(nil)
	_ executor.Sweeper          = (*Backend)(nil)
	_ executor.SessionBackend   = (*Backend)(nil)
)

// New returns a Backend that keeps its containers in o.Dir. It leaves
// containers of an earlier Backend alone: List returns them and Delete removes
// them.
func New(o Options) (*Backend, error) {
	o, err := o.orDefault()
	if err != nil {
		return nil, err
	}
	mode := fs.FileMode(0o700)
	if o.SwitchUser { // others get through to what is theirs in it
		mode = 0o711
	}
	if err := os.MkdirAll(o.Dir, mode); err != nil {
		return nil, err
	}
	// Processes are found by this path: it must have only one spelling.
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return nil, err
	}
	if o.Dir, err = filepath.EvalSymlinks(o.Dir); err != nil {
		return nil, err
	}
	return &Backend{
		options:    o,
		containers: make(map[string]*container),
		hurry:      tenant.Hurry{Limit: tenant.HurryLimit},
		ports:      hostport.NewRange(o.FirstPort, o.LastPort),
	}, nil
}

// Probe lists what a plain process does not have.
func (b *Backend) Probe(context.Context) (executor.Host, error) {
	const why = "the process backend isolates nothing; use the libcontainer backend"
	h := executor.Host{Backend: "process", MemoryMB: hostMemoryMB(), DiskMB: diskMB(b.options.Dir)}
	for _, name := range []executor.FeatureName{
		executor.FeatureRootFS, executor.FeatureUsers, executor.FeatureOwnIDs, executor.FeatureMemoryLimit, executor.FeatureDiskLimit,
		executor.FeatureCPUWeight, executor.FeaturePIDLimit, executor.FeatureOwnNetwork, executor.FeatureEgressRules, executor.FeatureConnectionLimit, executor.FeatureOpenFiles,
		executor.FeatureReadOnlyMounts, executor.FeatureSeccomp, executor.FeaturePrivileged,
	} {
		missing := why
		if name == executor.FeatureUsers && b.options.SwitchUser {
			missing = ""
		}
		h.Features = append(h.Features, executor.Feature{Name: name, Missing: missing})
	}
	return h, nil
}

// List implements [executor.ContainerBackend]. If somebody has deleted
// Options.Dir, no container is known.
func (b *Backend) List(context.Context) ([]string, error) {
	return guids.Dirs(b.options.Dir)
}

// find is the container with a guid that this Backend has made.
func (b *Backend) find(guid string) (*container, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.containers[guid]
	if c == nil || !c.made {
		return nil, &executor.BackendError{Kind: executor.ErrNoContainer, GUID: guid}
	}
	return c, nil
}
