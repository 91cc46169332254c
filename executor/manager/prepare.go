package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/transfer"
)

// errNoDir is what transfers say without Options.Dir.
var errNoDir = errors.New("transfers need a directory: set Options.Dir of the manager")

// A preparation fetches what a container needs from servers, and makes it, but for its
// volumes. It is used by one job at a time, without the Manager's lock.
type preparation struct {
	manager   *Manager
	container executor.Container
	spec      executor.ContainerSpec
	files     func(context.Context) ([]executor.File, error) // as in executor.Work
	logs      *logs
	// credentials are those of the container, nil without Options.Identity.
	credentials *credentials
	// undo takes back what was done, in the order in which it was done. It is
	// for when the container is gone.
	undo    []func(context.Context) error
	volumes []executor.Mount
}

func newPreparation(m *Manager, c executor.Container, w executor.Work, l *logs) *preparation {
	return &preparation{manager: m, container: c, spec: containerSpec(c, &w, m.options.DefaultMaxPIDs), files: w.Files, logs: l}
}

func (p *preparation) domain() string { return p.container.Tags[executor.TagDomain] }

// fetches reports whether fetchAll has anything to do.
func (p *preparation) fetches() bool {
	_, layered := p.manager.options.Backend.(executor.Layerer)
	_, layer, err := executor.SplitRootFS(p.spec.RootFS)
	return layered && (layer != nil || err != nil) || len(dependencies(*p.container.RunInfo)) > 0
}

// fetchAll fetches the layer of the root file system and what is mounted into the
// container. Servers of tenants decide how long that takes. What it has done when it
// fails is undone with the container's deletion.
func (p *preparation) fetchAll(ctx context.Context) error {
	if err := p.manager.host.Refuse(&p.spec); err != nil {
		return err
	}
	const mib = 1 << 20
	disk := p.container.Resources.DiskMB * mib
	if err := p.layer(ctx, &disk); err != nil {
		return fmt.Errorf("layer of the root file system: %w", err)
	}
	for _, d := range dependencies(*p.container.RunInfo) {
		m, err := p.dependency(ctx, d, &disk)
		if err != nil {
			return fmt.Errorf("cached dependency %s: %w", d.name, err)
		}
		p.spec.Mounts = append(p.spec.Mounts, m)
	}
	return nil
}

// create makes the container, for which everything has been fetched. What it has
// done when it fails is undone with the container's deletion.
func (p *preparation) create(ctx context.Context) (executor.Endpoint, error) {
	none, spec := executor.Endpoint{}, p.spec
	if err := p.manager.host.Refuse(&spec); err != nil {
		return none, err
	}
	if target, source := p.container.RunInfo.TrustedSystemCertificatesPath, p.manager.options.TrustedCertificates; target != "" && source != "" {
		spec.Mounts = append(spec.Mounts, executor.Mount{Source: source, Target: target})
	}
	spec.Mounts = append(spec.Mounts, p.volumes...)
	if p.manager.options.Identity == nil {
		return p.make(ctx, spec)
	}
	if err := p.credit(&spec); err != nil {
		return none, fmt.Errorf("credentials: %w", err)
	}
	endpoint, err := p.make(ctx, spec)
	if err != nil {
		return none, err
	}
	if err := p.credentials.issueFirst(endpoint); err != nil {
		return none, fmt.Errorf("credentials: %w", err)
	}
	return endpoint, nil
}

// make makes the container. If there is no room for it on the cell's disk, make removes
// what the cache keeps for nobody and tries once more.
func (p *preparation) make(ctx context.Context, spec executor.ContainerSpec) (endpoint executor.Endpoint, err error) {
	if p.files != nil {
		if spec.Files, err = p.files(ctx); err != nil {
			return endpoint, fmt.Errorf("files: %w", err)
		}
	}
	if p.manager.fetcher == nil {
		return p.manager.options.Backend.Create(ctx, spec)
	}
	full := func(err error) bool { return errors.Is(err, executor.ErrNoRoom) }
	err = p.manager.fetcher.MakingRoom(ctx, full, func() (err error) {
		endpoint, err = p.manager.options.Backend.Create(ctx, spec)
		return err
	})
	return endpoint, err
}

// layer fetches the layer of a preloaded root file system, if there is one, and
// has the backend unpack it. Layers are kept like cached dependencies.
func (p *preparation) layer(ctx context.Context, disk *int64) error {
	backend, can := p.manager.options.Backend.(executor.Layerer)
	if !can {
		return nil
	}
	base, layer, err := executor.SplitRootFS(p.spec.RootFS)
	if err != nil || layer == nil {
		return err
	}
	request := transfer.Request{URL: layer.URL, CacheKey: layer.SHA256, Algorithm: "sha256", Value: layer.SHA256, Domain: p.domain()}
	path, err := p.fetch(disk, func(f *transfer.Fetcher) (*transfer.Lease, error) {
		kind := strings.Join([]string{"layer", base, layer.Path}, "\x00")
		return f.Unpacked(ctx, request, kind, *disk, func(ctx context.Context, file *os.File, dir string, l archive.Limits) (int64, error) {
			if _, err := file.Seek(0, io.SeekStart); err != nil {
				return 0, err
			}
			return backend.UnpackLayer(ctx, executor.LayerSpec{
				GUID: p.spec.GUID, RootFS: base, Path: layer.Path, Archive: file, Dir: dir,
				MaxBytes: l.MaxContentBytes, MaxEntries: l.MaxContentEntries, MaxDisk: l.MaxDisk,
			})
		})
	})
	p.spec.RootFS, p.spec.Layers = base, []string{path}
	return err
}

// dependency fetches one.
func (p *preparation) dependency(ctx context.Context, d dependency, disk *int64) (executor.Mount, error) {
	stdout, _ := p.logs.writers(false, false, d.source)
	progress(stdout, "Downloading", d.artifact)
	d.request.Domain = p.domain()
	path, err := p.fetch(disk, func(f *transfer.Fetcher) (*transfer.Lease, error) { return f.Directory(ctx, d.request, *disk) })
	if err != nil {
		return executor.Mount{}, err
	}
	progress(stdout, "Downloaded", d.artifact)
	return executor.Mount{Source: path, Target: d.target}, nil
}

// fetch keeps what is fetched until the container is gone. All of a container
// take at most its DiskMB, of which disk is left; 0 means that it has none.
func (p *preparation) fetch(disk *int64, fetch func(*transfer.Fetcher) (*transfer.Lease, error)) (path string, err error) {
	if p.manager.fetcher == nil {
		return "", errNoDir
	}
	lease, err := fetch(p.manager.fetcher)
	if errors.Is(err, archive.ErrTooLarge) && *disk > 0 {
		return "", fmt.Errorf("%w (what the container's cached dependencies take together is at most its DiskMB)", err)
	}
	if err != nil {
		return "", err
	}
	if *disk > 0 {
		*disk = max(*disk-lease.Size, 1)
	}
	p.undo = append(p.undo, func(context.Context) error { lease.Release(); return nil })
	return lease.Path, nil
}

// containerSpec is what the backend has to know of a container.
func containerSpec(c executor.Container, w *executor.Work, defaultMaxPIDs int64) executor.ContainerSpec {
	info := &w.RunInfo
	spec := executor.ContainerSpec{
		GUID: c.GUID, RootFS: info.RootFS, Resources: c.Resources, CPUWeight: info.CPUWeight, Privileged: info.Privileged,
		Ports: info.Ports, EgressRules: info.EgressRules, Files: info.VolumeMountedFiles,
		ImageUsername: w.ImageUsername, ImagePassword: w.ImagePassword, CertificateProperties: info.CertificateProperties,
	}
	orDefault(&spec.Resources.MaxPIDs, defaultMaxPIDs)
	orDefault(&spec.CPUWeight, executor.MaxCPUWeight)
	if info.Network != nil {
		spec.NetworkProperties = info.Network.Properties
	}
	return spec
}

// A dependency is an archive that is fetched once per cell and mounted
// read-only.
type dependency struct {
	name, target string
	artifact     string // its own name, for the log
	source       string // of what is written to the log
	request      transfer.Request
}

// dependencies are the cached dependencies and the shared image layers.
func dependencies(info executor.RunInfo) []dependency {
	var list []dependency
	for _, d := range info.CachedDependencies {
		list = append(list, dependency{cmp.Or(d.Name, d.From), d.To, d.Name, cmp.Or(d.LogSource, info.LogSource), transfer.Request{
			URL: d.From, CacheKey: d.CacheKey, Algorithm: d.Checksum.Algorithm, Value: d.Checksum.Value,
		}})
	}
	for _, l := range info.ImageLayers {
		if l.LayerType == executor.LayerShared {
			list = append(list, dependency{cmp.Or(l.Name, l.URL), l.DestinationPath, l.Name, info.LogSource, layerRequest(l)})
		}
	}
	return list
}

// layerRequest is the archive of an image layer. Its key is its content if
// that is known.
func layerRequest(l executor.ImageLayer) transfer.Request {
	r := transfer.Request{URL: l.URL, CacheKey: l.URL, Value: l.DigestValue}
	switch l.DigestAlgorithm {
	case executor.DigestSHA256:
		r.Algorithm = "sha256"
	case executor.DigestSHA512:
		r.Algorithm = "sha512"
	}
	switch l.MediaType {
	case executor.MediaTypeTGZ:
		r.Format = archive.TGZ
	case executor.MediaTypeTAR:
		r.Format = archive.Tar
	case executor.MediaTypeZIP:
		r.Format = archive.Zip
	}
	return r
}

// layerDownloads are the image layers that belong to the container alone: they
// are put into it before its setup.
func layerDownloads(info executor.RunInfo) []download {
	var list []download
	for _, l := range info.ImageLayers {
		if l.LayerType == executor.LayerExclusive {
			r := layerRequest(l)
			r.CacheKey = "" // nobody else wants it
			list = append(list, download{request: r, artifact: l.Name, to: l.DestinationPath, user: info.LegacyDownloadUser})
		}
	}
	return list
}
