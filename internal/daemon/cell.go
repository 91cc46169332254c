package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
)

// Cell are the settings of a cell, for embedding.
type Cell struct {
	CellID  string `name:"cell_id" required:"true" help:"the cell's id, unique in the fleet; also the common name of its certificate"`
	Zone    string `name:"zone" help:"the availability zone"`
	Dir     string `name:"dir" required:"true" help:"directory of the cell's own, for containers, logs and downloads; what is in it may be removed"`
	Backend string `name:"backend" oneof:"auto libcontainer process" help:"libcontainer for real containers; process for plain processes, which NOTHING isolates; auto for what this host can"`

	MemoryMB   int64 `name:"memory_mb" range:"0..1000000000" unit:"MiB" help:"memory for containers; 0 for what the host has"`
	DiskMB     int64 `name:"disk_mb" range:"0..1000000000" unit:"MiB" help:"disk for containers; 0 for what the host has"`
	Containers int64 `name:"containers" default:"250" range:"1..65535" help:"how many containers there may be"`
	// ExtraResources are parsed by amounts.
	ExtraResources map[string]string `name:"extra_resources" help:"further resources that work may take, as gpu=2; they are counted, and nothing is attached"`

	PlacementTags         []string `name:"placement_tags" help:"tags that work must ask for to come here"`
	OptionalPlacementTags []string `name:"optional_placement_tags" help:"tags that work may ask for"`

	ExternalIP      string            `name:"external_ip" default:"127.0.0.1" help:"address at which the ports of containers are reached from outside"`
	FirstPort       uint16            `name:"first_port" default:"61001" range:"1024..65535" help:"the first host port for containers"`
	LastPort        uint16            `name:"last_port" default:"65535" range:"1024..65535" help:"the last host port for containers"`
	ImageDirs       []string          `name:"image_dirs" help:"directories below which images may lie that a container names by their path"`
	Preloaded       map[string]string `name:"preloaded" help:"names of images: preloaded:NAME stands for the URL"`
	SharedIDs       bool              `name:"shared_ids" help:"let containers share the host's uids and gids, for images and volumes on file systems without idmapped mounts; otherwise each has its own where this host can"`
	AllowPrivileged bool              `name:"allow_privileged" help:"let containers ask for more rights, with which they can take over the host"`

	EndedLogs     int   `name:"ended_logs" default:"200" range:"0..100000" unit:"containers" help:"of how many containers that are gone the end of each log is kept, for diegoctl logs"`
	EndedLogBytes int64 `name:"ended_log_bytes" default:"65536" range:"1..1073741824" unit:"bytes" help:"how much of each log of such a container is kept"`

	TransferAllow []string `name:"transfer_allow" help:"networks or addresses that downloads and uploads may reach though they are denied, by transfer_deny or always: loopback, link-local and unspecified addresses, metadata services and multicast"`
	TransferDeny  []string `name:"transfer_deny" help:"networks or addresses that downloads and uploads may not reach"`

	EvacuationTimeout time.Duration `name:"evacuation_timeout" default:"10m" range:"1s..24h" help:"how long the work may take to leave the cell when it is drained"`
	StopPause         time.Duration `name:"stop_pause" default:"5s" range:"0s..5m" help:"how long routers have to hear that an instance was replaced before it is stopped; 0 for not at all"`
	SyncInterval      time.Duration `name:"sync_interval" default:"30s" range:"100ms..1h" help:"between two comparisons of containers and records"`
	PresenceTTL       time.Duration `name:"presence_ttl" default:"15s" range:"1s..10m" help:"how long the cell is present without a word from it"`
	SelfTest          bool          `name:"self_test" default:"true" help:"make a container with a mapped port now and then, and take no work while that fails"`
}

// CheckCell is for the Check method of settings that embed Cell.
func (c *Cell) CheckCell(report func(name, want string)) {
	if _, err := c.extra(); err != nil {
		report("extra_resources", err.Error())
	}
	if c.FirstPort > c.LastPort {
		report("first_port", "want at most last_port")
	}
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
// others reach at url. Close the backend after the cell's Run; that releases
// the directory too.
func (c *Cell) Open(ctx context.Context, api CellBBS, url string, figures auction.Metrics, log *slog.Logger) (*localcell.Cell, *Backend, error) {
	dir, err := OpenDir("dir", c.Dir)
	if err != nil {
		return nil, nil, err
	}
	dir.Tell(log)
	backend, err := OpenBackend(ctx, BackendOptions{
		Kind: c.Backend, Dir: dir.In(), ExternalIP: c.ExternalIP, FirstPort: c.FirstPort, LastPort: c.LastPort,
		ImageDirs: c.ImageDirs, Preloaded: c.Preloaded, SharedIDs: c.SharedIDs, AllowPrivileged: c.AllowPrivileged,
	})
	if err != nil {
		return nil, nil, errors.Join(err, dir.Close())
	}
	closeBackend := backend.close
	backend.close = func() error { return errors.Join(closeBackend(), dir.Close()) }
	level := slog.LevelInfo
	if !backend.Isolated {
		level = slog.LevelWarn
	}
	log.Log(ctx, level, "backend", "name", backend.Name, "why", backend.Why, "lacks", backend.Lacks)
	// The manager clears only what this backend has left. An earlier start may
	// have used the other backend, whose containers nobody else would clear.
	if ended, err := ClearBackends(ctx, dir.In(), backend.Name); err != nil || ended > 0 {
		log.Warn("an earlier start with another backend has left containers", "ended", ended, "err", err)
	}
	cell, err := c.make(ctx, backend, dir, api, url, figures, log)
	if err != nil {
		return nil, nil, errors.Join(err, backend.Close())
	}
	return cell, backend, nil
}

func (c *Cell) make(ctx context.Context, backend *Backend, dir *Dir, api CellBBS, url string, figures auction.Metrics, log *slog.Logger) (*localcell.Cell, error) {
	if err := c.checkRoom(ctx, backend); err != nil {
		return nil, err
	}
	managed, err := dir.Make("manager")
	if err != nil {
		return nil, err
	}
	extra, err := c.extra()
	if err != nil {
		return nil, err
	}
	m, err := manager.New(ctx, manager.Options{
		Backend: backend, Dir: managed, Logger: log,
		Capacity:  executor.Capacity{MemoryMB: c.MemoryMB, DiskMB: c.DiskMB, Containers: c.Containers, Extra: extra},
		EndedLogs: cmp.Or(c.EndedLogs, -1), EndedLogBytes: c.EndedLogBytes,
		TransferAllow: networks(c.TransferAllow), TransferDeny: networks(c.TransferDeny),
	})
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
		BBS: api, Owner: owner, TTL: c.PresenceTTL,
		Presence: bbs.CellPresence{
			CellID: c.CellID, Address: url, Zone: c.Zone, Capacity: m.Total(), RootFSProviders: providers,
			PlacementTags: c.PlacementTags, OptionalPlacementTags: c.OptionalPlacementTags,
		},
	})
	if err != nil {
		return nil, err
	}
	o := rep.Options{
		CellID: c.CellID, BBS: api, Executor: m, Announcer: announcer, AnnounceInterval: c.PresenceTTL / 3, Zone: c.Zone,
		RootFSProviders: providers, PlacementTags: c.PlacementTags, OptionalPlacementTags: c.OptionalPlacementTags, RefusedFields: m.RefusedFields(),
		EvacuationTimeout: c.EvacuationTimeout, StopPause: c.StopPause, SyncInterval: c.SyncInterval, Metrics: figures, Logger: log,
	}
	if c.StopPause == 0 {
		o.StopPause = -1
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
	r, err := rep.New(o)
	if err != nil {
		return nil, err
	}
	return &localcell.Cell{Rep: r, Manager: m}, nil
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
			return fmt.Errorf("there is no %s for containers in %s, or nobody knows how much: free some, or say with %s what they may have", room.of, c.Dir, room.flag)
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
	}
	return list
}
