// Package libcontainer is a backend of real containers, made with runc's
// libcontainer. It needs Linux, root, and a build with cgo for amd64 or arm64;
// anywhere else [New] fails and says so.
//
// A container consists of namespaces, cgroups (v1 or v2), an overlay over a root
// file system that all containers of an image share, and a first process of our
// own. The first process starts every other process, reaps what ends, and dies
// with the daemon, so no process runs on unwatched. Starting a process takes a
// fork and executes no program of the host inside the container. Once the first
// process is dead, nothing can be started in the container or beside it.
//
// The same binary is executed again to set a container up: this package's
// initialization takes over before main if libcontainer has started it. The
// caller does nothing for that. In the daemon, the initialization locks main's
// goroutine to the first thread.
//
// The disk holds enough to clean up. A container is a directory below
// Options.Dir that is named after its guid, made first and removed last, and the
// names of everything else follow from the guid. So Delete works the same for a
// container of this daemon, for one of an earlier daemon, and for one that was
// made only in part. If somebody has deleted the directory, the name of the
// cgroup leads to the rest.
//
// Each container has uids and gids of its own, which a user namespace and
// idmapped mounts translate; see [Options.SharedIDs].
//
// # Concurrent use
//
// The methods of [Backend] may be called concurrently. [Options] are a plain
// value: any number of goroutines may use one while none changes it.
package libcontainer

// The files of this package make, use and remove containers. The parts of a
// container are packages of their own, below internal:
//
//	cgroup    limits, measures and kills what runs in it
//	ids       its uids and gids, and its users
//	network   its addresses, its way to the host, the firewall
//	pid1      its first process, and the way to talk to it
//	rootfs    images, its own layer, its disk
//	seccomp   which system calls it may make
