//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/stage"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/volumes"
	"github.com/diegosdk/diego/executor/volumes/volumetest"
)

// A binder is a volume driver that mounts something on the host: a directory
// for each container and volume. It remembers nothing.
type binder struct{ dir string }

func binderOf(dir string) map[string]manager.VolumeDriver {
	return map[string]manager.VolumeDriver{"binder": binder{dir + "-volumes"}}
}

func (d binder) at(guid string, v executor.VolumeMount) string {
	return filepath.Join(d.dir, guid+"-"+v.Dedicated.MounterID)
}

func (d binder) Mount(_ context.Context, guid string, v executor.VolumeMount) (string, error) {
	stage.Reached()
	if err := os.MkdirAll(d.at(guid, v), 0o755); err != nil {
		return "", err
	}
	err := unix.Mount(d.at(guid, v), d.at(guid, v), "", unix.MS_BIND, "")
	stage.Reached()
	return d.at(guid, v), err
}

func (d binder) Unmount(_ context.Context, guid string, v executor.VolumeMount) error {
	stage.Reached()
	if err := unix.Unmount(d.at(guid, v), 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOENT) {
		return err
	}
	stage.Reached()
	return os.RemoveAll(d.at(guid, v))
}

// volumeWork is fullWork with a volume.
func volumeWork() executor.Work {
	return edited(fullWork(), func(w *executor.Work) {
		w.VolumeMounts = []executor.VolumeMount{{
			Driver: "binder", ContainerDir: "/mnt/volume", Mode: executor.MountReadOnly, Dedicated: &executor.DedicatedDevice{MounterID: "one"},
		}}
	})
}

// mounting asks for volumes, each as "driver id directory mode".
func mounting(w executor.Work, list ...string) executor.Work {
	return edited(w, func(w *executor.Work) {
		for _, text := range list {
			f := strings.Fields(text)
			w.VolumeMounts = append(w.VolumeMounts, executor.VolumeMount{
				Driver: f[0], ContainerDir: f[2], Mode: f[3], Shared: &executor.SharedDevice{VolumeID: f[1]},
			})
		}
	})
}

// withDrivers is a cell with all drivers of package volumes, the root of those
// of the local one, an exported directory, and a plugin.
func withDrivers(t *testing.T, f *fixture) (c *cell, root, exported string, plugin *volumetest.Plugin) {
	t.Helper()
	root, exported = filepath.Join(t.TempDir(), "volumes"), t.TempDir()
	if err := os.Chmod(exported, 0o777); err != nil {
		t.Fatal(err)
	}
	local, err := volumes.NewLocal(root)
	if err != nil {
		t.Fatal(err)
	}
	exports, err := volumes.NewExports(map[string]volumes.Export{"data": {Path: exported, Writable: true}})
	if err != nil {
		t.Fatal(err)
	}
	short, err := os.MkdirTemp("", "v") // the path of a socket has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(short) })
	plugin = volumetest.StartPlugin(t, short)
	return cellOf(t, f, func(o *manager.Options) {
		o.Volumes = map[string]manager.VolumeDriver{"local": local, "export": exports, "plugin": volumes.NewPlugin(plugin.Socket)}
	}), root, exported, plugin
}

func TestContainersShareVolumesOfEveryDriverWhichOutliveThem(t *testing.T) {
	eachIDs(t, func(t *testing.T, edit func(*Options)) {
		c, root, exported, plugin := withDrivers(t, newFixture(t, edit))
		everywhere := func(mode string) []string {
			return []string{"local a /local " + mode, "export data /export " + mode, "plugin p /plugin " + mode}
		}
		// Each writes what the other waits for.
		const meet = "for d in /local /export /plugin; do echo $ME > $d/$ME || { touch /local/failed; exit 1; }; until test -s $d/$OTHER; do sleep 0.01; ! test -e /local/failed || exit 1; done; cat $d/$OTHER; done"
		for user, names := range map[string]string{"1000:100": "ME=one OTHER=two; ", "root": "ME=two OTHER=one; "} {
			c.launch(strings.ReplaceAll(user, ":", "-"), modest, mounting(script(user, names+meet), everywhere("rw")...))
		}
		for guid, want := range map[string]string{"1000-100": "two\ntwo\ntwo\n", "root": "one\none\none\n"} {
			if r := c.result(guid); r.Failed || c.log(guid, manager.Stdout) != want {
				t.Errorf("%s: %+v, it read %q; %s", guid, r, c.log(guid, manager.Stdout), c.log(guid, manager.Stderr))
			}
		}
		for file, want := range map[string][2]uint32{
			filepath.Join(root, "a", "one"): {1000, 100}, filepath.Join(exported, "two"): {0, 0},
		} {
			var s unix.Stat_t
			if err := unix.Lstat(file, &s); err != nil || [2]uint32{s.Uid, s.Gid} != want {
				t.Errorf("on the host, %s belongs to %d:%d, %v; want %d", file, s.Uid, s.Gid, err, want)
			}
		}
		c.remove("1000-100", "root")
		// The next one finds it, and cannot change it.
		c.launch("reader", modest, mounting(script("root", "cat /*/one && for d in /local /export /plugin; do ! touch $d/x && ! rm $d/one && ! mount -o remount,rw $d || exit 1; done"), everywhere("r")...))
		if r := c.result("reader"); r.Failed || c.log("reader", manager.Stdout) != "one\none\none\n" {
			t.Errorf("reader: %+v, it read %q; %s", r, c.log("reader", manager.Stdout), c.log("reader", manager.Stderr))
		}
		c.remove("reader")
		if left := plugin.Mounted(); len(left) != 0 || len(c.Volumes()) != 0 {
			t.Errorf("still mounted are %q, %v", left, c.Volumes())
		}
	})
}

func TestAHostileVolumeDoesNoHarm(t *testing.T) {
	eachIDs(t, func(t *testing.T, edit func(*Options)) {
		f := newFixture(t, edit)
		c, root, _, _ := withDrivers(t, f)
		secret := f.hostFile("secret", "the host's own", 0o644)
		volume := filepath.Join(root, "a")
		shell, err := os.ReadFile("/bin/dash")
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			os.Mkdir(volume, 0o777), os.Chmod(volume, 0o777),
			os.Symlink(secret, filepath.Join(volume, "link")), os.Symlink("/proc/1/root", filepath.Join(volume, "root")),
			os.Symlink("../../../../../..", filepath.Join(volume, "up")),
			unix.Mknod(filepath.Join(volume, "zero"), unix.S_IFCHR|0o666, int(unix.Mkdev(1, 5))), os.Chmod(filepath.Join(volume, "zero"), 0o666),
			os.WriteFile(filepath.Join(volume, "sh"), shell, 0o755), os.Chmod(filepath.Join(volume, "sh"), 0o755|os.ModeSetuid),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
		c.launch("c", modest, mounting(script("nobody", `
			cd /volume
			cat link "root`+secret+`" "up`+secret+`" && echo a link leads to the host
			head -c1 zero && echo a device can be read
			grep -q "^nosuid\|[ ,]nosuid" /proc/self/mountinfo || echo what is tested?
			./sh -p -c 'test $(id -u) = 65534' || echo setuid has an effect
			grep " /volume " /proc/self/mountinfo | grep nosuid | grep -q nodev || echo the mount is not restricted`), "local a /volume rw"))
		if r := c.result("c"); c.log("c", manager.Stdout) != "" || r.Failed {
			t.Errorf("%+v: it says %q, %s", r, c.log("c", manager.Stdout), c.log("c", manager.Stderr))
		}
		c.remove("c")
	})
}

func TestAVolumeIsNotMountedOverWhatKeepsAContainerFromTheHost(t *testing.T) {
	f := newFixture(t)
	c, _, _, plugin := withDrivers(t, f)
	places := map[string]string{"root": "/", "dots": "/..", "proc": "/proc", "process": "proc/self/ns", "device": "/dev/null", "sys": "/x/../sys"}
	for guid, place := range places {
		c.launch(guid, modest, mounting(script("nobody", "true"), "plugin p "+place+" rw"))
		if r := c.result(guid); !strings.Contains(r.FailureReason, fmt.Sprintf("a mount at %q: the container needs its own ", place)) {
			t.Errorf("at %s: %+v", place, r)
		}
	}
	c.remove(slices.Collect(maps.Keys(places))...)
	if left := plugin.Mounted(); len(left) != 0 {
		t.Errorf("still mounted are %q", left)
	}
	if ours := mounts(t, f.options.Dir); len(ours) != 0 {
		t.Errorf("still mounted are %q", ours)
	}
}
