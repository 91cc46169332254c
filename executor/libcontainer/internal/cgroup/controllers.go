//go:build linux && cgo && (amd64 || arm64)

package cgroup

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/opencontainers/cgroups"
	"golang.org/x/sys/unix"
)

// Features are what the cgroups of a host can limit. A text says why they
// cannot; empty means that they can.
type Features struct {
	Fatal             string // why there can be no containers at all
	Memory, CPU, PIDs string
	Swap              bool // whether swap can be limited (v1), or always is (v2)
}

// TurnOn turns on the controllers that containers need, below base, which is
// that of [Base], and returns what can be limited there. With v1 there is nothing
// to turn on.
func TurnOn(base string) Features {
	return turnOn(filepath.Join(hostRoot, base), func(controller string) (string, error) { return cgroups.FindCgroupMountpoint("", controller) })
}

// turnOn turns on what cgroups at root can limit. mount finds where a controller
// of v1 is mounted.
func turnOn(root string, mount func(controller string) (string, error)) (f Features) {
	on := func(controller string) string { return checkV1(root, controller, mount) }
	if versionAt(root) == &v2 {
		if err := unix.Access(root, unix.W_OK); err != nil {
			f.Fatal = "cgroups cannot be made in " + root + ": " + err.Error() + "; mount cgroup2 there writable"
		}
		on = func(controller string) string { return turnOnV2(root, controller) }
		f.Swap = true
	} else {
		// It finds what belongs to a container; without it none can be removed.
		f.Fatal = on("devices")
		if path, err := mount("memory"); err == nil {
			f.Swap = exists(filepath.Join(path, v1.swapLimit.file))
		}
	}
	f.Memory, f.CPU, f.PIDs = on("memory"), on("cpu"), on("pids")
	return f
}

// checkV1 says why a controller of v1 cannot be used, or is "".
func checkV1(root, controller string, mount func(string) (string, error)) string {
	path, err := mount(controller)
	if err != nil {
		dir := filepath.Join(root, controller)
		if beside := filepath.Join(root, "unified"); slices.Contains(words(filepath.Join(beside, controllersFile)), controller) {
			return "the cgroup controller " + controller + " is in the v2 hierarchy " + beside + " while others are in v1; mount all in one version"
		}
		return "the cgroup controller " + controller + " is not mounted; boot with cgroup v2, or: mkdir -p " + dir + " && mount -t cgroup -o " + controller + " none " + dir
	}
	if err := unix.Access(path, unix.W_OK); err != nil {
		return "the cgroup controller " + controller + " cannot be written: " + err.Error()
	}
	return ""
}

// turnOnV2 has root hand a controller on to the cgroups below it, as making a
// container needs, and says why that cannot be. It is "" if root does.
func turnOnV2(root, controller string) string {
	if !slices.Contains(words(filepath.Join(root, controllersFile)), controller) {
		return "the cgroup controller " + controller + " is not available in " + root + "; enable it in " + handedOnFile + " of the parent, and with cgroup_enable= if the kernel has it off"
	}
	handedOn := filepath.Join(root, handedOnFile)
	if slices.Contains(words(handedOn), controller) {
		return ""
	}
	switch err := put(handedOn, "+"+controller); {
	case errors.Is(err, unix.EBUSY):
		return "the cgroup controller " + controller + " cannot be had below " + root + ", as there are processes in it itself; move them, this daemon included, to a cgroup below it first"
	case err != nil:
		return "the cgroup controller " + controller + " cannot be had below " + root + ": " + err.Error()
	}
	return ""
}

// words are those of a file, or none if it cannot be read.
func words(path string) []string {
	text, _ := os.ReadFile(path)
	return strings.Fields(string(text))
}
