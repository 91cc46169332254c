package libcontainer

import (
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
)

// Options configure a Backend. They are a plain value.
type Options struct {
	// Dir holds the containers and the images that were unpacked for them. It
	// belongs to one Backend at a time and is made if missing. Empty is an
	// error, because the Backend removes what lies there.
	Dir string
	// ExternalIP is the address at which ports are reached from outside;
	// empty means 127.0.0.1, which only this host reaches.
	ExternalIP string
	// FirstPort and LastPort bound the host ports, both included; 0 means
	// DefaultFirstPort and DefaultLastPort.
	FirstPort, LastPort uint16
	// HostNetwork runs containers in the host's network: nothing is mapped,
	// and egress rules are refused.
	HostNetwork bool
	// Subnet holds the addresses of the containers, two for each. The zero
	// value means a free one with 2,048 pairs below 10.224.0.0/11.
	Subnet netip.Prefix
	// MaxConnections is how many connections that one container has begun the
	// kernel may track at once; 0 means an eighth of
	// net.netfilter.nf_conntrack_max. More are refused. Closed connections do not count.
	// Apart from that, once the kernel's table is half full, containers that have begun
	// most of what is in it may begin no more until they have less.
	MaxConnections uint32
	// ImageDirs are the directories below which images may lie that a container
	// names by their path ("dir:", "tar:" and "oci:"). Without them no such
	// image is allowed; otherwise any container could read the whole host.
	ImageDirs []string
	// Preloaded maps names to images: "preloaded:NAME" stands for the URL. The
	// administrator's own paths need not lie below ImageDirs.
	Preloaded map[string]string
	// CgroupParent begins the name of the cgroup that holds those of the
	// containers; empty means DefaultCgroupParent. It may be a path. It lies
	// below the root of each hierarchy or, with v2, below the cgroup that was
	// delegated to this process, as systemd does with Delegate=yes.
	CgroupParent string
	// FirstID and LastID bound the uids and gids of the host that containers
	// get, both included; 0 means DefaultFirstID and DefaultLastID. Nothing
	// else may use them. Each container gets IDsPerContainer of them, which no
	// container of another Backend of this host has.
	FirstID, LastID uint32
	// SharedIDs gives all containers the host's uids and gids instead, for
	// images and volumes on file systems without idmapped mounts. Tenants then
	// share what the kernel limits by uid.
	SharedIDs bool
	// MaxPIDs is the limit of processes and threads of a container that names
	// none; 0 means DefaultMaxPIDs.
	MaxPIDs int64
	// AllowPrivileged lets containers ask for more rights. A privileged
	// container can take over the host.
	AllowPrivileged bool
}

// The defaults of Options. The ports lie above those that systems give to
// outgoing connections, the ids where systemd and the tools for subordinate ids
// give none.
const (
	DefaultFirstPort    = 61001
	DefaultLastPort     = 65535
	DefaultFirstID      = 0x7000_0000
	DefaultLastID       = 0x7ffd_ffff
	DefaultCgroupParent = "diego"
	DefaultMaxPIDs      = 1024
)

// IDsPerContainer is how many uids and gids a container has, from 0 on.
const IDsPerContainer = 1 << 16

func (o Options) orDefault() (Options, error) {
	if o.Dir == "" {
		return o, fmt.Errorf("libcontainer: Options.Dir is empty; name a directory for the containers")
	}
	o.ExternalIP = cmp.Or(o.ExternalIP, "127.0.0.1")
	o.FirstPort = cmp.Or(o.FirstPort, DefaultFirstPort)
	o.LastPort = cmp.Or(o.LastPort, DefaultLastPort)
	if o.FirstPort > o.LastPort {
		return o, fmt.Errorf("libcontainer: Options.FirstPort %d is above LastPort %d", o.FirstPort, o.LastPort)
	}
	if o.Subnet.IsValid() && (!o.Subnet.Addr().Is4() || o.Subnet.Bits() > 30) {
		return o, fmt.Errorf("libcontainer: Options.Subnet %v is not an IPv4 block with room for two containers", o.Subnet)
	}
	o.CgroupParent = cmp.Or(o.CgroupParent, DefaultCgroupParent)
	o.FirstID = cmp.Or(o.FirstID, DefaultFirstID)
	o.LastID = cmp.Or(o.LastID, DefaultLastID)
	if o.FirstID < IDsPerContainer || o.LastID > 1<<31-1 || uint64(o.LastID) < uint64(o.FirstID)+IDsPerContainer-1 {
		return o, fmt.Errorf("libcontainer: Options.FirstID %d to LastID %d hold no %d ids between %d and %d, which one container takes",
			o.FirstID, o.LastID, IDsPerContainer, IDsPerContainer, 1<<31-1)
	}
	o.MaxPIDs = cmp.Or(o.MaxPIDs, DefaultMaxPIDs)
	return o, nil
}

// makeDir makes Dir, which has only one spelling afterwards.
func (o Options) makeDir() (Options, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return o, err
	}
	var err error
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return o, err
	}
	o.Dir, err = filepath.EvalSymlinks(o.Dir)
	return o, err
}
