package daemon

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/identity"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/parallel"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/rep/logforward"
)

// Cell are the settings of a cell, for embedding.
type Cell struct {
	CellID           string `name:"cell_id" option:"rep.Options.CellID" required:"true" help:"the cell's id, unique in the fleet; also the common name of its certificate"`
	Zone             string `name:"zone" option:"rep.Options.Zone" help:"the availability zone"`
	PreferredAddress string `name:"preferred_address" option:"rep.Options.PreferredAddress,by hand" oneof:"instance host" help:"where routers should reach instances: at the container's own address, which only routers on the cell's own host have a way to, or at a port of the host; unless set, routers choose"`
	Dir              string `name:"dir" option:"manager.Options.Dir,by hand" required:"true" help:"directory of the cell's own, for containers, logs and downloads; what is in it may be removed"`
	Backend          string `name:"backend" oneof:"auto libcontainer process" help:"libcontainer for real containers; process for plain processes, which NOTHING isolates; auto for what this host can"`

	MemoryMB   int64 `name:"memory_mb" option:"manager.Options.Capacity,by hand" range:"0..1000000000" unit:"MiB" help:"memory for containers; 0 for what the host has"`
	DiskMB     int64 `name:"disk_mb" range:"0..1000000000" unit:"MiB" help:"disk for containers; 0 for what the host has"`
	Containers int64 `name:"containers" default:"250" range:"1..65535" help:"how many containers there may be"`
	// ExtraResources are parsed by amounts.
	ExtraResources map[string]string `name:"extra_resources" help:"further resources that work may take, as gpu=2; they are counted, and nothing is attached"`

	PIDs           int64 `name:"pids" range:"0..1000000000" help:"processes and threads for containers; 0 for what the host has, or for not counting them"`
	DefaultMaxPIDs int64 `name:"default_max_pids" option:"manager.Options.DefaultMaxPIDs" default:"1024" range:"1..4194304" help:"how many processes and threads a container may have that sets no limit"`

	PlacementTags         []string `name:"placement_tags" option:"rep.Options.PlacementTags" help:"tags that work must ask for to come here"`
	OptionalPlacementTags []string `name:"optional_placement_tags" option:"rep.Options.OptionalPlacementTags" help:"tags that work may ask for"`

	ExternalIP      string            `name:"external_ip" option:"libcontainer.Options.ExternalIP process.Options.ExternalIP" default:"127.0.0.1" help:"address at which the ports of containers are reached from outside"`
	FirstPort       uint16            `name:"first_port" option:"libcontainer.Options.FirstPort process.Options.FirstPort" default:"61001" range:"1024..65535" help:"the first host port for containers"`
	LastPort        uint16            `name:"last_port" option:"libcontainer.Options.LastPort process.Options.LastPort" default:"65535" range:"1024..65535" help:"the last host port for containers"`
	ImageDirs       []string          `name:"image_dirs" option:"libcontainer.Options.ImageDirs" help:"directories below which images may lie that a container names by their path"`
	Preloaded       map[string]string `name:"preloaded" option:"libcontainer.Options.Preloaded" help:"names of images: preloaded:NAME stands for the URL"`
	SharedIDs       bool              `name:"shared_ids" option:"libcontainer.Options.SharedIDs" help:"let containers share the host's uids and gids, for images and volumes on file systems without idmapped mounts; otherwise each has its own where this host can"`
	AllowPrivileged bool              `name:"allow_privileged" option:"libcontainer.Options.AllowPrivileged" help:"let containers ask for more rights, with which they can take over the host"`

	Subnet         string `name:"subnet" option:"libcontainer.Options.Subnet,by hand" help:"network for the addresses of containers, two for each; unless set, a free one below 10.224.0.0/11"`
	MaxConnections int64  `name:"max_connections" option:"libcontainer.Options.MaxConnections,by hand" range:"0..4294967295" help:"connections begun by one container that the kernel may track at once; 0 for an eighth of the host's limit"`
	CgroupParent   string `name:"cgroup_parent" option:"libcontainer.Options.CgroupParent" default:"diego" help:"beginning of the name of the cgroup that holds those of the containers"`
	FirstID        int64  `name:"first_id" option:"libcontainer.Options.FirstID,by hand" default:"1879048192" range:"1..4294967294" help:"the first uid and gid of the host for containers"`
	LastID         int64  `name:"last_id" option:"libcontainer.Options.LastID,by hand" default:"2147352575" range:"1..4294967294" help:"the last uid and gid of the host for containers"`

	Upkeep

	TrustedCertificates string `name:"trusted_certificates" option:"manager.Options.TrustedCertificates" help:"directory of this host with the authorities that containers trust; it is mounted where their definition says"`

	IdentityCACert   string        `name:"identity_ca_cert" option:"manager.Options.Identity,by hand" help:"PEM file with the certificate of the authority that signs those of containers, and the certificates between it and a root; without it, work with certificate_properties is refused"`
	IdentityCAKey    string        `name:"identity_ca_key" help:"PEM file with the private key of identity_ca_cert"`
	IdentityLifetime time.Duration `name:"identity_lifetime" default:"24h" range:"1m..8760h" help:"how long the certificate of a container is valid; it is renewed in the last eighth of that time, but at most half an hour before its end"`

	Volumes

	Readers

	LogForward

	TransferAllow []string `name:"transfer_allow" option:"manager.Options.TransferAllow,by hand" help:"networks or addresses that downloads and uploads may reach though they are denied, by transfer_deny or always: loopback, link-local and unspecified addresses, those of containers, metadata services and multicast"`
	TransferDeny  []string `name:"transfer_deny" option:"manager.Options.TransferDeny,by hand" help:"networks or addresses that downloads and uploads may not reach"`

	TransferTLSCert string `name:"transfer_tls_cert" option:"manager.Options.TransferTLS,by hand" help:"PEM file with the certificate that downloads and uploads show to servers; it is read again for each connection"`
	TransferTLSKey  string `name:"transfer_tls_key" help:"PEM file with the private key of transfer_tls_cert"`
	TransferTLSCA   string `name:"transfer_tls_ca" help:"PEM file with authorities that servers' certificates may come from, besides those of the host; it is read again for each connection"`

	Index    int  `name:"index" option:"rep.Options.Index" default:"0" range:"0..1000000" help:"the cell's place in the order of its zone, for bin_pack_weight of the auctioneer"`
	SelfTest bool `name:"self_test" option:"rep.Options.SelfTest,by hand" default:"true" help:"make a container with a mapped port now and then, and take no work while that fails"`
}

// transferTLS is the TLS configuration of transfers, or nil without settings.
func (c *Cell) transferTLS() (func(host string) *tls.Config, error) {
	const prefix = "transfer_tls"
	config, err := clientTLS(prefix, c.TransferTLSCert, c.TransferTLSKey, c.TransferTLSCA)
	if config == nil || err != nil {
		return nil, err
	}
	return func(host string) *tls.Config {
		if c.TransferTLSCA == "" {
			return config
		}
		return rereadCA(config, prefix, c.TransferTLSCA, host)
	}, nil
}

// CheckCell is for the Check method of settings that embed Cell.
func (c *Cell) CheckCell(report func(name, want string)) {
	if _, err := c.extra(); err != nil {
		report("extra_resources", err.Error())
	}
	if c.FirstPort > c.LastPort {
		report("first_port", "want at most last_port")
	}
	if c.FirstID > c.LastID {
		report("first_id", "want at most last_id")
	}
	if _, err := c.subnet(); err != nil {
		report("subnet", "want a network such as 10.230.0.0/20")
	}
	if (c.TransferTLSCert == "") != (c.TransferTLSKey == "") {
		report("transfer_tls_key", "want it set together with transfer_tls_cert, or not at all")
	}
	if (c.IdentityCACert == "") != (c.IdentityCAKey == "") {
		report("identity_ca_key", "want it set together with identity_ca_cert, or not at all")
	}
	c.CheckLogForward(report)
	c.CheckVolumes(report)
	checkNetworks(report, "transfer_allow", c.TransferAllow)
	checkNetworks(report, "transfer_deny", c.TransferDeny)
	if ip, err := netip.ParseAddr(c.ExternalIP); err != nil || ip.IsUnspecified() {
		report("external_ip", "want an IP address of this host, such as 10.0.0.7")
	}
}

// A CellBBS is what a cell needs of a control plane.
type CellBBS interface {
	rep.BBS
	bbs.Presences
}

// Open takes the cell's directory, opens its backend, and makes the cell that
// others reach at url. Close the backend after the cell's Run; that sends the
// rest of the log lines and releases the directory too.
func (c *Cell) Open(ctx context.Context, api CellBBS, url string, figures auction.Metrics, log *slog.Logger) (*localcell.Cell, *Backend, error) {
	dir, err := OpenDir("dir", c.Dir)
	if err != nil {
		return nil, nil, err
	}
	dir.Tell(log)
	o := BackendOptions{Kind: c.Backend, Dir: dir.In()}
	apply(c, &o.Real, &o.Plain)
	o.Plain.Logger = log
	o.Real.MaxConnections, o.Real.FirstID, o.Real.LastID = uint32(c.MaxConnections), uint32(c.FirstID), uint32(c.LastID)
	if o.Real.Subnet, err = c.subnet(); err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	backend, err := OpenBackend(ctx, o)
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	backend.dir = dir
	closeBackend := backend.close
	backend.close = func() error { return errors.Join(closeBackend(), dir.Close()) }
	level := slog.LevelInfo
	if !backend.Isolated {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "backend", "name", backend.Name, "why", backend.Why, "lacks", backend.Lacks)
	// The manager clears only what this backend has left. An earlier start may
	// have used the other backend, whose containers nobody else would clear.
	if ended, err := ClearBackends(ctx, o, backend.Name); err != nil || ended > 0 {
		log.Warn("an earlier start with another backend has left containers", "ended", ended, "err", err)
	}
	forwarder, err := c.Forwarder(c.CellID, figures, log)
	if err != nil {
		return nil, nil, errors.Join(err, backend.Close())
	}
	cell, err := c.make(ctx, backend, dir, api, url, forwarder, figures, log)
	if err != nil {
		return nil, nil, errors.Join(err, backend.Close())
	}
	if p, ok := figures.(*httpapi.Prometheus); ok {
		publishUsage(p, cell)
	}
	if forwarder != nil {
		backend.forward(context.WithoutCancel(ctx), forwarder.Run)
	}
	return cell, backend, nil
}

// Keep calls run, and ends it with an error once the cell no longer has its directory;
// see [Dir.While]. It is for a backend of [Cell.Open].
func (b *Backend) Keep(run func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error { return b.dir.While(ctx, run) }
}

// forward calls run, which forwards the output of containers, until the backend has
// been closed: that carries what its containers wrote last.
func (b *Backend) forward(ctx context.Context, run func(context.Context)) {
	closeBackend, flush := b.close, parallel.During(ctx, run)
	b.close = func() error {
		defer flush()
		return closeBackend()
	}
}

func (c *Cell) make(ctx context.Context, backend *Backend, dir *Dir, api CellBBS, url string, forwarder *logforward.Forwarder, figures auction.Metrics, log *slog.Logger) (*localcell.Cell, error) {
	if err := c.checkRoom(ctx, backend); err != nil {
		return nil, err
	}
	managed, err := dir.Make(managerDir)
	if err != nil {
		return nil, err
	}
	extra, err := c.extra()
	if err != nil {
		return nil, err
	}
	mo := manager.Options{
		Backend: backend.ContainerBackend, // with its further abilities
		Dir:     managed, Observer: observer{cmp.Or[auction.Metrics](figures, auction.NoMetrics{})}, Logger: log,
		Capacity:      executor.Capacity{MemoryMB: c.MemoryMB, DiskMB: c.DiskMB, Containers: c.Containers, PIDs: c.PIDs, Extra: extra},
		TransferAllow: networks(c.TransferAllow), TransferDeny: networks(c.TransferDeny),
	}
	apply(c, &mo)
	c.Upkeep.Manager(&mo)
	if forwarder != nil {
		mo.LogSink = forwarder.Line
	}
	if mo.TransferTLS, err = c.transferTLS(); err != nil {
		return nil, err
	}
	if mo.Identity, err = Identity(c.IdentityCACert, c.IdentityCAKey, c.IdentityLifetime, log); err != nil {
		return nil, err
	}
	if err := checkDirectory("trusted_certificates", c.TrustedCertificates); err != nil {
		return nil, err
	}
	if mo.Volumes, err = c.Volumes.Drivers(); err != nil {
		return nil, err
	}
	m, err := manager.New(ctx, mo)
	if err != nil {
		return nil, err
	}
	providers := c.rootFSProviders(m.Host())
	// The containers of the earlier process are gone: they ended with it, or
	// Open has ended them. So this process may take over its name at once.
	owner, err := dir.Owner()
	if err != nil {
		return nil, err
	}
	announcer, err := bbs.NewAnnouncer(bbs.AnnouncerOptions{
		BBS: api, Owner: owner, TTL: c.PresenceTTL, VolumeDrivers: m.VolumeDrivers,
		Presence: bbs.CellPresence{
			CellID: c.CellID, Address: url, Zone: c.Zone, Capacity: m.Total(), RootFSProviders: providers,
			PlacementTags: c.PlacementTags, OptionalPlacementTags: c.OptionalPlacementTags,
		},
	})
	if err != nil {
		return nil, err
	}
	o := rep.Options{
		BBS: api, Announcer: announcer,
		RootFSProviders: providers, Metrics: figures, Logger: log,
	}
	apply(c, &o)
	c.Rep(&o)
	if err := KeepCordon(dir.In(), &o); err != nil {
		return nil, dir.Wrong(err)
	}
	if c.PreferredAddress != "" {
		if err := o.PreferredAddress.UnmarshalText([]byte(strings.ToUpper(c.PreferredAddress))); err != nil {
			return nil, err
		}
	}
	if c.SelfTest {
		o.SelfTest = &rep.SelfTest{
			Resources: executor.Resources{MemoryMB: 64},
			// With a port, the self-test covers the network too.
			RunInfo: executor.RunInfo{RootFS: "host:", Ports: []uint16{8080}, Action: executor.Action{
				Run: &executor.RunAction{Path: "true", User: "root"},
			}},
		}
	}
	return localcell.New(m, o)
}

// checkRoom fails if nothing says how much memory and disk the containers may
// have.
func (c *Cell) checkRoom(ctx context.Context, backend *Backend) error {
	host, err := backend.Probe(ctx)
	if err != nil {
		return err
	}
	for _, room := range []struct {
		of, flag       string
		set, available int64
	}{{"memory", "--memory-mb", c.MemoryMB, host.MemoryMB}, {"disk", "--disk-mb", c.DiskMB, host.DiskMB}} {
		if room.set == 0 && room.available == 0 {
			return fmt.Errorf("%s for containers in %s is used up or unknown: free some, or set %s", room.of, c.Dir, room.flag)
		}
	}
	return nil
}

// extra parses the cell's further resources.
func (c *Cell) extra() (executor.Amounts, error) {
	if len(c.ExtraResources) == 0 {
		return nil, nil
	}
	amounts := executor.Amounts{}
	for _, name := range slices.Sorted(maps.Keys(c.ExtraResources)) {
		n, err := strconv.ParseInt(c.ExtraResources[name], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("want whole numbers, such as gpu=2; %s is %q", name, c.ExtraResources[name])
		}
		amounts[name] = n
	}
	var v executor.Validator
	amounts.Validate(&v, "extra_resources")
	return amounts, v.Err()
}

// rootFSProviders lists the root file systems that a cell with these settings
// can make on a host.
func (c *Cell) rootFSProviders(host executor.Host) []string {
	list := []string{"host"}
	if !host.Has(executor.FeatureRootFS) {
		return list
	}
	if len(c.ImageDirs) > 0 {
		list = append(list, "dir", "tar", "oci")
	}
	for _, name := range slices.Sorted(maps.Keys(c.Preloaded)) {
		list = append(list, "preloaded:"+name)
		if !strings.HasPrefix(c.Preloaded[name], "host:") {
			list = append(list, "preloaded+layer:"+name)
		}
	}
	return list
}

// subnet is the zero Prefix if the settings have none.
func (c *Cell) subnet() (netip.Prefix, error) {
	if c.Subnet == "" {
		return netip.Prefix{}, nil
	}
	return netip.ParsePrefix(c.Subnet)
}

// Identity loads the authority that signs the certificates of containers, and
// logs its name and its end. Without files it returns nil. The error names the
// setting that is wrong.
func Identity(certFile, keyFile string, lifetime time.Duration, log *slog.Logger) (*identity.Authority, error) {
	if certFile == "" && keyFile == "" {
		return nil, nil
	}
	cert, certErr := os.ReadFile(certFile)
	key, keyErr := os.ReadFile(keyFile)
	if err := errors.Join(named("identity_ca_cert", certErr), named("identity_ca_key", keyErr)); err != nil {
		return nil, err
	}
	authority, err := identity.NewAuthority(cert, key, lifetime, time.Now())
	if err != nil {
		return nil, fmt.Errorf("identity_ca_cert %s, identity_ca_key %s and identity_lifetime %v: %w", certFile, keyFile, lifetime, err)
	}
	log.Info("containers get certificates", "authority", authority.Name(), "lifetime", lifetime, "authority_ends", authority.NotAfter())
	return authority, nil
}

// checkDirectory is an error if the setting of that name is set and is no
// directory.
func checkDirectory(name, path string) error {
	if path == "" {
		return nil
	}
	info, err := os.Stat(path)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
