// Package volumetest is the suite that every volume driver passes. A driver's own
// test is
//
//	func TestDriver(t *testing.T) {
//		volumetest.Run(t, volumetest.Options{New: newDriver, IDs: [2]string{"one", "another"}})
//	}
//
// Each case is named after the sentence of [manager.VolumeDriver] that it checks.
//
// # Concurrent use
//
// The suite calls a driver from the goroutine of the test. [Plugin] says which
// of its methods may be called concurrently. Options are plain values: any
// number of goroutines may use one while none changes it.
package volumetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

// Options say how a driver is tested.
type Options struct {
	// New returns a driver without mounts. A test may make a second driver, which
	// stands for the next daemon and has what the first one has kept.
	New func(testing.TB) manager.VolumeDriver
	// IDs are two volumes that may be mounted for writing.
	IDs [2]string
	// MountConfig goes with every mount.
	MountConfig string
}

// Hostile returns ids that would lead a driver astray if it used them as paths.
// The suite wants each refused.
func Hostile() []string {
	return []string{
		"..", ".", "/", "/etc", "../..", "a/b", "a/../../etc", "./a", ".hidden", "a\x00b", "a\nb", "~root", "$HOME", "a b", "-rf",
		"ａ", "é", "e\u0301", "\u202egnp.exe", "..\u2215etc", strings.Repeat("a", 4096), strings.Repeat("../", 100) + "etc/passwd",
	}
}

// Run runs the suite.
func Run(t *testing.T, o Options) {
	shared := func(id, dir string) executor.VolumeMount {
		return executor.VolumeMount{Driver: "tested", ContainerDir: dir, Mode: executor.MountReadWrite,
			Shared: &executor.SharedDevice{VolumeID: id, MountConfig: o.MountConfig}}
	}
	mount := func(t *testing.T, d manager.VolumeDriver, guid string, v executor.VolumeMount) string {
		t.Helper()
		path, err := d.Mount(t.Context(), guid, v)
		if err != nil {
			t.Fatalf("Mount: %v", err)
		}
		if info, err := os.Stat(path); !filepath.IsAbs(path) || err != nil || !info.IsDir() {
			t.Fatalf("Mount says %q, which is not an absolute path of a directory: %v", path, err)
		}
		return path
	}
	unmount := func(t *testing.T, d manager.VolumeDriver, guid string, v executor.VolumeMount) {
		t.Helper()
		if err := d.Unmount(t.Context(), guid, v); err != nil {
			t.Errorf("Unmount: %v", err)
		}
	}
	write := func(t *testing.T, dir, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, "file"), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	mustRead := func(t *testing.T, dir, want string) {
		t.Helper()
		if got, err := os.ReadFile(filepath.Join(dir, "file")); err != nil || string(got) != want {
			t.Errorf("the volume has %q, %v, want %q", got, err, want)
		}
	}
	a, b := shared(o.IDs[0], "/a"), shared(o.IDs[1], "/b")

	t.Run("containers share a volume, and it survives each of them", func(t *testing.T) {
		d := o.New(t)
		first, second := mount(t, d, "first", a), mount(t, d, "second", a)
		write(t, first, "kept")
		mustRead(t, second, "kept")
		unmount(t, d, "first", a)
		mustRead(t, second, "kept")
		unmount(t, d, "second", a)
		mustRead(t, mount(t, d, "third", a), "kept")
		unmount(t, d, "third", a)
	})
	t.Run("volumes of different ids have nothing in common", func(t *testing.T) {
		d := o.New(t)
		write(t, mount(t, d, "c", a), "a")
		write(t, mount(t, d, "c", b), "b")
		mustRead(t, mount(t, d, "other", a), "a")
		for _, guid := range []string{"c", "other"} {
			unmount(t, d, guid, a)
		}
		unmount(t, d, "c", b)
	})
	t.Run("a container may have a volume in two places", func(t *testing.T) {
		d, elsewhere := o.New(t), shared(o.IDs[0], "/elsewhere")
		mount(t, d, "c", a)
		path := mount(t, d, "c", elsewhere)
		unmount(t, d, "c", a)
		write(t, path, "still there")
		unmount(t, d, "c", elsewhere)
	})
	t.Run("it is no error if nothing is mounted", func(t *testing.T) {
		d := o.New(t)
		mount(t, d, "c", a)
		unmount(t, d, "c", a)
		unmount(t, d, "c", a)
		unmount(t, d, "never", b)
	})
	t.Run("the next daemon unmounts what an earlier one has mounted", func(t *testing.T) {
		first := o.New(t)
		mount(t, first, "c", a)
		next := o.New(t)
		unmount(t, next, "c", a)
		mount(t, next, "d", a)
		unmount(t, next, "d", a)
	})
	t.Run("an id never leads elsewhere", func(t *testing.T) {
		d := o.New(t)
		for _, id := range Hostile() {
			for _, v := range []executor.VolumeMount{shared(id, "/a"), {
				Driver: "tested", ContainerDir: "/a", Mode: executor.MountReadWrite, Dedicated: &executor.DedicatedDevice{MounterID: id, MountConfig: o.MountConfig},
			}} {
				if path, err := d.Mount(t.Context(), "c", v); err == nil {
					t.Errorf("the id %.40q is at %s, want an error", id, path)
				}
				unmount(t, d, "c", v)
			}
		}
	})
}
