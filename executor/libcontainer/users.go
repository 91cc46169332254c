//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

// A user is one of a container, by its own files.
type user struct {
	uid, gid uint32
	groups   []uint32
	home     string
}

// user finds a user by name or number, or by "user:group". A number needs no
// entry. Empty means root, who has no capabilities either.
func (c *container) user(name string) (user, error) {
	if name == "" {
		name = "root"
	}
	who, group, hasGroup := strings.Cut(name, ":")
	u := user{home: "/"}
	found := false
	number, byNumber := id(who)
	if byNumber {
		u.uid, u.gid, found = number, number, true
	}
	login := who
	c.eachLine("/etc/passwd", func(f []string) bool {
		if len(f) < 6 || f[0] != who && !(byNumber && f[2] == who) {
			return true
		}
		uid, uidOK := id(f[2])
		gid, gidOK := id(f[3])
		if !uidOK || !gidOK {
			return true
		}
		u.uid, u.gid, u.home, login, found = uid, gid, f[5], f[0], true
		return false
	})
	if !found && who == "root" { // an image without users
		found = true
	}
	groupFound := !hasGroup
	if n, isNumber := id(group); hasGroup && isNumber {
		u.gid, groupFound = n, true
	}
	c.eachLine("/etc/group", func(f []string) bool {
		if len(f) < 4 {
			return true
		}
		gid, ok := id(f[2])
		if !ok {
			return true
		}
		if hasGroup && f[0] == group {
			u.gid, groupFound = gid, true
		}
		for member := range strings.SplitSeq(f[3], ",") {
			if member == login && len(u.groups) < maxGroups {
				u.groups = append(u.groups, gid)
			}
		}
		return true
	})
	if !found || !groupFound {
		return user{}, &executor.BackendError{Kind: executor.ErrNoUser, GUID: c.guid,
			Detail: fmt.Sprintf("%q; its root file system's /etc/passwd and /etc/group do not have it", name)}
	}
	for _, n := range append([]uint32{u.uid, u.gid}, u.groups...) {
		if !c.ids.has(n) {
			return user{}, &executor.BackendError{Kind: executor.ErrNoUser, GUID: c.guid,
				Detail: fmt.Sprintf("%q: it has the uid, gid or group %d, and containers have ids up to %d; choose another, or set Options.SharedIDs", name, n, IDsPerContainer-1)}
		}
	}
	return u, nil
}

const (
	maxGroups     = 1000
	maxUsersBytes = 512 << 10 // of a file that the container may have written; this process reads it at each start
)

func id(text string) (uint32, bool) {
	n, err := strconv.ParseUint(text, 10, 31)
	return uint32(n), err == nil
}

// eachLine calls f with the fields of each line of a file of the container,
// until it returns false.
func (c *container) eachLine(name string, f func([]string) bool) {
	file, err := rootfs.Open(c.root, name)
	if err != nil {
		return
	}
	defer file.Close()
	for lines := bufio.NewScanner(io.LimitReader(file, maxUsersBytes)); lines.Scan(); {
		if !f(strings.Split(lines.Text(), ":")) {
			return
		}
	}
}

func (c *container) isDir(name string) bool {
	f, err := rootfs.Find(c.root, name, unix.O_DIRECTORY)
	if err != nil {
		return false
	}
	f.Close()
	return true
}
