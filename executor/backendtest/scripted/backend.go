package scripted

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
)

// An Op is an operation of a backend, for Options.Fault.
type Op string

// The operations.
const (
	Create    Op = "create"
	Start     Op = "start"
	Delete    Op = "delete"
	List      Op = "list"
	StreamIn  Op = "stream in"
	StreamOut Op = "stream out"
)

// Options configure a Backend. The zero value is useful.
type Options struct {
	// Now is the virtual time; nil means the time of the last Step.
	Now func() time.Time
	// Programs are statements by the path of a process.
	Programs map[string][]string
	// Fault is asked before every operation and makes it fail with its error.
	// Nil means no faults. It must not call the Backend.
	Fault func(op Op, guid string) error
	// Host is what Probe answers; the zero value is an isolated host that has
	// every feature and does not know its size.
	Host executor.Host
}

// firstPort is the first host port that is given out.
const firstPort = 61001

// Backend is an [executor.ContainerBackend] and an [executor.Stepper]. Its
// methods may be called concurrently.
type Backend struct {
	options Options

	mu         sync.Mutex
	now        time.Time
	sequence   int64 // orders what is due at one time
	containers map[string]*container
	nextPort   uint16
	calls      []func() // to be made without the lock
}

var (
	_ executor.ContainerBackend = (*Backend)(nil)
	_ executor.Stepper          = (*Backend)(nil)
)

type container struct {
	spec      executor.ContainerSpec
	ports     []executor.PortMapping
	processes []*process
	orphans   int64
	files     map[string]string // content by path without leading slash
	links     map[string]string
	spent     time.Duration
}

// New returns a Backend without containers.
func New(o Options) *Backend {
	if o.Host.Backend == "" {
		o.Host = executor.Host{Backend: "scripted", Isolated: true, Features: []executor.Feature{
			{Name: executor.FeatureRootFS}, {Name: executor.FeatureUsers}, {Name: executor.FeatureOwnIDs}, {Name: executor.FeatureMemoryLimit},
			{Name: executor.FeatureDiskLimit}, {Name: executor.FeatureCPUWeight}, {Name: executor.FeaturePIDLimit},
			{Name: executor.FeatureOwnNetwork}, {Name: executor.FeatureEgressRules}, {Name: executor.FeatureConnectionLimit}, {Name: executor.FeatureOpenFiles}, {Name: executor.FeatureReadOnlyMounts},
			{Name: executor.FeatureSeccomp}, {Name: executor.FeaturePrivileged},
		}}
	}
	return &Backend{options: o, containers: make(map[string]*container), nextPort: firstPort}
}

// Restart returns a Backend with the containers of b, as a daemon finds them
// that was killed and has started again: nobody hears any more how their
// processes end. b is not to be used afterwards.
func (b *Backend) Restart() *Backend {
	b.mu.Lock()
	defer b.mu.Unlock()
	next := New(b.options)
	next.now, next.sequence, next.containers, next.nextPort = b.now, b.sequence, b.containers, b.nextPort
	for _, c := range next.containers {
		for _, p := range c.processes {
			p.backend = next
			p.spec.Exited, p.spec.Stdout, p.spec.Stderr = nil, nil, nil
		}
	}
	b.containers = make(map[string]*container)
	return next
}

// begin locks b for an operation on a container, which must exist.
func (b *Backend) begin(op Op, guid string) (*container, error) {
	b.mu.Lock()
	if err := b.fault(op, guid); err != nil {
		return nil, err
	}
	c := b.containers[guid]
	if c == nil {
		return nil, &executor.BackendError{Kind: executor.ErrNoContainer, GUID: guid}
	}
	return c, nil
}

// end unlocks b and makes the calls that have come up.
func (b *Backend) end() {
	calls := b.calls
	b.calls = nil
	b.mu.Unlock()
	for _, call := range calls {
		call()
	}
}

func (b *Backend) fault(op Op, guid string) error {
	if b.options.Fault == nil {
		return nil
	}
	return b.options.Fault(op, guid)
}

func (b *Backend) time() time.Time {
	if b.options.Now != nil {
		b.now = b.options.Now()
	}
	return b.now
}

// Probe implements [executor.ContainerBackend].
func (b *Backend) Probe(context.Context) (executor.Host, error) { return b.options.Host, nil }

// Create implements [executor.ContainerBackend].
func (b *Backend) Create(ctx context.Context, spec executor.ContainerSpec) (executor.Endpoint, error) {
	b.mu.Lock()
	defer b.end()
	none := executor.Endpoint{}
	if err := errors.Join(ctx.Err(), b.fault(Create, spec.GUID)); err != nil {
		return none, err
	}
	if b.containers[spec.GUID] != nil {
		return none, &executor.BackendError{Kind: executor.ErrContainerExists, GUID: spec.GUID}
	}
	c := &container{spec: spec, files: make(map[string]string), links: make(map[string]string)}
	for _, port := range spec.Ports {
		c.ports = append(c.ports, executor.PortMapping{ContainerPort: port, HostPort: b.nextPort})
		if b.nextPort++; b.nextPort == 0 {
			b.nextPort = firstPort
		}
	}
	for _, f := range spec.Files {
		c.files[clean("/", f.Path)] = f.Content
	}
	b.containers[spec.GUID] = c
	return executor.Endpoint{Addresses: executor.Addresses{ExternalIP: "127.0.0.1", InternalIP: "10.255.0.1", Ports: c.ports}}, nil
}

// Delete implements [executor.ContainerBackend].
func (b *Backend) Delete(_ context.Context, guid string) error {
	b.mu.Lock()
	defer b.end()
	if err := b.fault(Delete, guid); err != nil {
		return err
	}
	if c := b.containers[guid]; c != nil {
		b.signal(c, executor.Kill)
		delete(b.containers, guid)
	}
	return nil
}

// List implements [executor.ContainerBackend].
func (b *Backend) List(context.Context) ([]string, error) {
	b.mu.Lock()
	defer b.end()
	if err := b.fault(List, ""); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(b.containers)), nil
}

// Signal implements [executor.ContainerBackend].
func (b *Backend) Signal(_ context.Context, guid string, s executor.Signal) error {
	c, err := b.begin("signal", guid)
	defer b.end()
	if err == nil {
		b.signal(c, s)
	}
	return err
}

func (b *Backend) signal(c *container, s executor.Signal) {
	c.orphans = 0
	for _, p := range slices.Clone(c.processes) {
		p.signal(s)
	}
}

// Usage implements [executor.ContainerBackend]. A process uses 1 MiB.
func (b *Backend) Usage(_ context.Context, guid string) (executor.Usage, error) {
	c, err := b.begin("metrics", guid)
	defer b.end()
	if err != nil {
		return executor.Usage{}, err
	}
	m := executor.Usage{PIDs: int64(len(c.processes)) + c.orphans, CPU: c.spent, ReceivedBytes: executor.Unknown, SentBytes: executor.Unknown}
	m.MemoryBytes = m.PIDs << 20
	for _, content := range c.files {
		m.DiskBytes += int64(len(content))
	}
	return m, nil
}

// StreamIn implements [executor.ContainerBackend].
func (b *Backend) StreamIn(ctx context.Context, guid, dir, _ string, r io.Reader) error {
	c, err := b.begin(StreamIn, guid)
	b.end()
	if err != nil {
		return err
	}
	files, links := make(map[string]string), make(map[string]string)
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		name, err := archive.Name(h.Name)
		switch h.Typeflag {
		case tar.TypeDir:
		case tar.TypeReg:
			content, readErr := io.ReadAll(in)
			err = errors.Join(err, readErr)
			files[clean(dir, name)] = string(content)
		case tar.TypeSymlink:
			err = errors.Join(err, archive.Link(name, h.Linkname))
			links[clean(dir, name)] = h.Linkname
		default:
			err = errors.Join(err, executor.ErrUnsafeArchive)
		}
		if errors.Is(err, executor.ErrUnsafeArchive) {
			return &executor.BackendError{Kind: executor.ErrUnsafeArchive, GUID: guid, Detail: h.Name, Cause: err}
		}
		if err := errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	b.mu.Lock()
	defer b.end()
	maps.Copy(c.files, files)
	maps.Copy(c.links, links)
	return nil
}

// StreamOut implements [executor.ContainerBackend].
func (b *Backend) StreamOut(_ context.Context, guid, name, _ string) (io.ReadCloser, error) {
	c, err := b.begin(StreamOut, guid)
	defer b.end()
	if err != nil {
		return nil, err
	}
	var out strings.Builder
	w := tar.NewWriter(&out)
	name = clean("/", name)
	above := path.Dir(name)
	dir := false
	put := func(file string, h tar.Header, content string) {
		if file != name && !strings.HasPrefix(file, name+"/") {
			return
		}
		if file != name && !dir {
			dir = true
			w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: path.Base(name) + "/", Mode: 0o755})
		}
		h.Name = strings.TrimPrefix(strings.TrimPrefix(file, above), "/")
		w.WriteHeader(&h)
		io.WriteString(w, content)
	}
	for _, file := range slices.Sorted(maps.Keys(c.files)) {
		put(file, tar.Header{Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(c.files[file]))}, c.files[file])
	}
	for _, file := range slices.Sorted(maps.Keys(c.links)) {
		put(file, tar.Header{Typeflag: tar.TypeSymlink, Mode: 0o777, Linkname: c.links[file]}, "")
	}
	if out.Len() == 0 {
		return nil, &executor.BackendError{Kind: executor.ErrNoFile, GUID: guid, Detail: name}
	}
	w.Close()
	return io.NopCloser(strings.NewReader(out.String())), nil
}

// Dial implements [executor.ContainerBackend].
func (b *Backend) Dial(_ context.Context, guid string, port uint16) (io.ReadWriteCloser, error) {
	c, err := b.begin("dial", guid)
	defer b.end()
	if err != nil {
		return nil, err
	}
	for _, p := range c.processes {
		if status, listens := p.listens[port]; listens {
			return &conn{status: status}, nil
		}
	}
	return nil, fmt.Errorf("container %q: port %d: connection refused", guid, port)
}

// A conn answers one HTTP request, or nothing if status is 0.
type conn struct {
	status  int
	request strings.Builder
	answer  *strings.Reader
}

func (c *conn) Write(p []byte) (int, error) { return c.request.Write(p) }

func (c *conn) Read(p []byte) (int, error) {
	if c.answer == nil {
		text := ""
		if c.status != 0 && strings.Contains(c.request.String(), "\r\n\r\n") {
			text = fmt.Sprintf("HTTP/1.1 %d Scripted\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", c.status)
		}
		c.answer = strings.NewReader(text)
	}
	return c.answer.Read(p)
}

func (c *conn) Close() error { return nil }

// read is the content of a file of the container or of a mount.
func (c *container) read(name string) (string, bool) {
	if content, ok := c.files[name]; ok {
		return content, true
	}
	for _, m := range c.spec.Mounts {
		if below, in := strings.CutPrefix(name+"/", clean("/", m.Target)+"/"); in {
			content, err := os.ReadFile(path.Join(m.Source, below))
			return string(content), err == nil
		}
	}
	return "", false
}

// clean is a path of a container without its leading slash.
func clean(dir, name string) string {
	if path.IsAbs(name) {
		dir = "/"
	}
	return strings.TrimPrefix(path.Join("/", dir, name), "/")
}
