//go:build unix

package process

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/diegosdk/diego/executor"
)

// The variable of every process that holds its container's directory.
const containerDirVar = "DIEGO_CONTAINER_DIR"

// Options configure a Backend.
type Options struct {
	// Dir holds the containers' directories. It belongs to one Backend at a
	// time and is made if missing. Empty is an error: what lies there is
	// removed.
	Dir string
	// ExternalIP is the address at which ports are reached from outside;
	// empty means 127.0.0.1.
	ExternalIP string
	// FirstPort and LastPort bound the host ports, both included; 0 means
	// DefaultFirstPort and DefaultLastPort.
	FirstPort, LastPort uint16
	// SwitchUser runs every process as the user that it asks for, which takes
	// root. Otherwise the wish is ignored.
	SwitchUser bool
}

// The default port range lies above the ports that systems give to outgoing
// connections.
const (
	DefaultFirstPort = 61001
	DefaultLastPort  = 65535
)

func (o Options) orDefault() (Options, error) {
	if o.Dir == "" {
		return o, fmt.Errorf("process: Options.Dir is empty; name a directory for the containers")
	}
	if o.ExternalIP == "" {
		o.ExternalIP = "127.0.0.1"
	}
	if o.FirstPort == 0 {
		o.FirstPort = DefaultFirstPort
	}
	if o.LastPort == 0 {
		o.LastPort = DefaultLastPort
	}
	if o.FirstPort > o.LastPort {
		return o, fmt.Errorf("process: Options.FirstPort %d is above LastPort %d", o.FirstPort, o.LastPort)
	}
	if o.SwitchUser && os.Geteuid() != 0 {
		return o, fmt.Errorf("process: Options.SwitchUser takes root; run as root or leave it off")
	}
	return o, nil
}

// Backend is an [executor.ContainerBackend]. Its methods may be called at
// once from many goroutines.
type Backend struct {
	options Options

	mu         sync.Mutex
	containers map[string]*container
	ports      ports
}

var _ executor.ContainerBackend = (*Backend)(nil)

// New returns a Backend that keeps its containers in o.Dir. It touches none
// that are there already: List shows them and Delete removes them.
func New(o Options) (*Backend, error) {
	o, err := o.orDefault()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
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
		ports:      ports{first: o.FirstPort, last: o.LastPort},
	}, nil
}

// Probe lists what a plain process does not have.
func (b *Backend) Probe(context.Context) (executor.Host, error) {
	const why = "the process backend isolates nothing; use the libcontainer backend"
	h := executor.Host{Backend: "process", MemoryMB: hostMemoryMB(), DiskMB: diskMB(b.options.Dir)}
	for _, name := range []executor.FeatureName{
		executor.FeatureRootFS, executor.FeatureUsers, executor.FeatureMemoryLimit, executor.FeatureDiskLimit,
		executor.FeatureCPUWeight, executor.FeaturePIDLimit, executor.FeatureOwnNetwork, executor.FeatureEgressRules,
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

// List implements [executor.ContainerBackend].
func (b *Backend) List(context.Context) ([]string, error) {
	entries, err := os.ReadDir(b.options.Dir)
	if err != nil {
		return nil, err
	}
	var guids []string
	for _, e := range entries {
		if e.IsDir() && validGUID(e.Name()) {
			guids = append(guids, e.Name())
		}
	}
	slices.Sort(guids)
	return guids, nil
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

// validGUID keeps every path that is made of a guid below Options.Dir.
func validGUID(guid string) bool {
	var v executor.Validator
	v.GUID("guid", guid)
	return v.Err() == nil
}
