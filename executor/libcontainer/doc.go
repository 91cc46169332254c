// Package libcontainer is a backend of real containers, made with runc's
// libcontainer. It needs Linux, root, and a build with cgo for amd64 or arm64;
// anywhere else [New] says so.
//
// A container is namespaces, cgroups (v1 or v2), an overlay over a root file
// system that all containers of an image share, and a first process of our
// own. That one starts every other process, reaps what ends, and dies with the
// daemon, so that nothing runs on unwatched. No program of the host is ever
// executed inside a container: to start a process there costs a fork, and once
// the first process is dead nothing can be started in the container, nor by
// mistake beside it.
//
// The same binary is executed again to set a container up; this package's
// initialization takes over in that case, before main. Nobody has to call
// anything. Otherwise it locks main's goroutine to the first thread; see init.
//
// What lies on the disk is enough to clean up: a container is a directory with
// its guid below Options.Dir, made first and removed last, and everything else
// about it has a name that its guid gives away. So Delete works the same for a
// container of this daemon, of an earlier one, and for half of one. Where
// somebody has deleted that directory, the name of its cgroup stands for it.
//
// Each container has uids and gids of its own, which a user namespace and
// idmapped mounts translate; see [Options.SharedIDs].
package libcontainer
