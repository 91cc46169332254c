//go:build linux && cgo && (amd64 || arm64)

package ids

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Exhausted reports whether an attempt failed because disk, memory, descriptors
// or processes ran out. That does not mean that the host lacks a feature:
// somebody may have used them up to make the daemon share ids.
func Exhausted(err error) bool {
	return slices.ContainsFunc([]error{unix.ENOSPC, unix.EDQUOT, unix.ENOMEM, unix.EMFILE, unix.ENFILE, unix.EAGAIN},
		func(e error) bool { return errors.Is(err, e) })
}

// Probe makes a Range as containers would have it, or says why this host cannot.
// first is the host's id for the Range's id 0. The caller closes the namespace of
// the Range. If the attempt fails because something is exhausted, there is
// neither a reason nor a namespace.
func Probe(first, size uint32) (r Range, missing string) {
	if info, err := os.Stat("/run"); err != nil || info.Mode()&0o001 == 0 {
		return r, "others may not enter /run, where root file systems are mounted; allow it by chmod o+x"
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return r, reason(err, err.Error())
	}
	if at := onProc(string(mounts)); at != "" {
		return r, "something is mounted at " + at + ", so that the kernel lets no user namespace have a /proc; unmount it"
	}
	space, err := newNamespace(first, size)
	if err != nil {
		return r, reason(err, "a user namespace cannot be made ("+err.Error()+"); raise user.max_user_namespaces, and see that no security module forbids them")
	}
	return Range{First: first, Size: size, Space: space}, ""
}

// reason returns missing, the reason for err, unless something was exhausted.
func reason(err error, missing string) string {
	if Exhausted(err) {
		return ""
	}
	return missing
}

// onProc returns where something is mounted on /proc, by the text of mountinfo,
// or "". The kernel lets a user namespace mount a /proc only if nothing hides a
// part of the present one. A mount on an empty directory hides nothing.
func onProc(mounts string) string {
	for line := range strings.Lines(mounts) {
		if f := strings.Fields(line); len(f) > 4 && strings.HasPrefix(f[4], "/proc/") && f[4] != "/proc/sys/fs/binfmt_misc" {
			return f[4]
		}
	}
	return ""
}
