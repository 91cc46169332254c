//go:build linux && cgo && (amd64 || arm64)

package ids

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/diegosdk/diego/executor"
)

// A User is one of a container, by its own files.
type User struct {
	UID, GID uint32
	Groups   []uint32
	Home     string
}

// The files of a container that say which users it has.
const (
	PasswdFile = "/etc/passwd"
	GroupFile  = "/etc/group"
)

// FindUser finds a user of the container guid by name or number, or by
// "user:group". A number needs no entry. Empty means root, who has no
// capabilities either. open opens the container's /etc/passwd and /etc/group,
// which need not exist. A user that neither has, or whose ids are not among r,
// is an executor.ErrNoUser.
func FindUser(guid, name string, r Range, open func(path string) (*os.File, error)) (User, error) {
	name = cmp.Or(name, "root")
	who, group, hasGroup := strings.Cut(name, ":")
	u := User{Home: "/"}
	found := false
	number, byNumber := id(who)
	if byNumber {
		u.UID, u.GID, found = number, number, true
	}
	login := who
	passwdCut := eachLine(open, PasswdFile, func(f []string) bool {
		if len(f) < 6 || f[0] != who && !(byNumber && f[2] == who) {
			return true
		}
		uid, uidOK := id(f[2])
		gid, gidOK := id(f[3])
		if !uidOK || !gidOK {
			return true
		}
		u.UID, u.GID, u.Home, login, found = uid, gid, f[5], f[0], true
		return false
	})
	if !found && who == "root" { // an image without users
		found = true
	}
	groupFound := !hasGroup
	if n, isNumber := id(group); hasGroup && isNumber {
		u.GID, groupFound = n, true
	}
	groupCut := eachLine(open, GroupFile, func(f []string) bool {
		if len(f) < 4 {
			return true
		}
		gid, ok := id(f[2])
		if !ok {
			return true
		}
		if hasGroup && f[0] == group {
			u.GID, groupFound = gid, true
		}
		for member := range strings.SplitSeq(f[3], ",") {
			if member == login && len(u.Groups) < maxGroups {
				u.Groups = append(u.Groups, gid)
			}
		}
		return true
	})
	if !found || !groupFound {
		where := ""
		if passwdCut || groupCut {
			where = fmt.Sprintf(" in their first %d KiB, and no more is read", maxUsersBytes>>10)
		}
		return User{}, &executor.BackendError{Kind: executor.ErrNoUser, GUID: guid,
			Detail: fmt.Sprintf("%q; its root file system's /etc/passwd and /etc/group do not have it%s", name, where)}
	}
	for _, n := range append([]uint32{u.UID, u.GID}, u.Groups...) {
		if !r.Has(n) {
			return User{}, &executor.BackendError{Kind: executor.ErrNoUser, GUID: guid,
				Detail: fmt.Sprintf("%q: it has the uid, gid or group %d, and containers have ids up to %d; choose another, or set Options.SharedIDs", name, n, r.Size-1)}
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

// eachLine calls f with the fields of each line of a file, until it returns
// false. It reads at most maxUsersBytes, and reports whether there are more.
func eachLine(open func(string) (*os.File, error), name string, f func([]string) bool) (cut bool) {
	file, err := open(name)
	if err != nil {
		return false
	}
	defer file.Close()
	limited := &io.LimitedReader{R: file, N: maxUsersBytes}
	lines := bufio.NewScanner(limited)
	lines.Buffer(nil, maxUsersBytes+1) // or a group with many members would be the last that is read
	for lines.Scan() {
		if !f(strings.Split(lines.Text(), ":")) {
			return false
		}
	}
	return limited.N == 0
}
