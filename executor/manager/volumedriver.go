package manager

import (
	"context"

	"github.com/diegosdk/diego/executor"
)

// A VolumeDriver makes volumes appear on the host. Package volumes has three of
// them, and executor/volumes/volumetest is the suite for one of your own. The
// id of the SharedDevice or DedicatedDevice names a volume; the manager gives a
// dedicated one to one container of the cell at a time.
//
// The methods are called concurrently, but one at a time for each container and
// volume. A call gets a context that ends after Options.VolumeTimeout. The
// manager then goes on without the call; until it returns, nothing else is asked
// of the driver for that container and volume.
type VolumeDriver interface {
	// Mount makes the volume v available to a container and returns its
	// absolute path on the host, which stays until Unmount. The container gets
	// it without devices and setuid, and read-only unless v.Mode is
	// executor.MountReadWrite. Who may have the volume, and whether v.Mode is
	// allowed, is for Mount to say.
	Mount(ctx context.Context, guid string, v executor.VolumeMount) (path string, err error)
	// Unmount undoes Mount once the container is gone. It also follows a Mount
	// that has failed, or whose daemon was killed meanwhile, so it is no error
	// if nothing is mounted. It is called again later if it fails. It gets the
	// same arguments as Mount, from an earlier daemon too.
	Unmount(ctx context.Context, guid string, v executor.VolumeMount) error
}

// A VolumeKinder is a [VolumeDriver] that says what it is. A manager writes that
// down with each volume. So after a crash no volume goes to another driver that
// has got the name meanwhile. Kind may be called concurrently with the other
// methods.
type VolumeKinder interface {
	// Kind returns a text for operators, such as "the plugin at /run/nfs.sock". Two
	// drivers have the same kind if each can unmount what the other has mounted.
	Kind() string
}

// A VolumeProber is a [VolumeDriver] that may be out of order for a while, for
// example because it is another process. A driver without it counts as always
// in order. Probe may be called concurrently with the other methods.
type VolumeProber interface {
	// Probe returns why the driver cannot mount volumes, or nil. The manager
	// calls it every Options.VolumeInterval, and offers no driver before its
	// first success.
	Probe(ctx context.Context) error
}
