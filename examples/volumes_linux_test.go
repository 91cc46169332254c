package examples_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/rclonetest"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A volumeCell is a cell with volumes of all kinds.
type volumeCell struct {
	*cluster
	plugin *rclonetest.Plugin
	dir    string
	args   []string
}

func newVolumeCell(t *testing.T, plugin *rclonetest.Plugin) *volumeCell {
	c := &volumeCell{cluster: newCluster(t, "sqlite:"+t.TempDir()+"/diego.db", 1, 0), plugin: plugin, dir: t.TempDir()}
	writable, shown := t.TempDir(), t.TempDir()
	err := errors.Join(os.Chmod(writable, 0o777), os.WriteFile(filepath.Join(shown, "0"), []byte("0\n"), 0o644), os.WriteFile(filepath.Join(shown, "1"), []byte("1\n"), 0o644))
	if err != nil {
		t.Fatal(err)
	}
	c.args = []string{
		"--volume-root", filepath.Join(t.TempDir(), "volumes"), "--volume-exports", "rw=" + writable + ",ro=" + shown, "--volume-exports-writable", "rw",
		"--volume-plugins", "rclone=" + plugin.Socket, "--volume-interval", "100ms", "--shared-ids", "--drain=false",
	}
	t.Cleanup(func() { endContainers(t, c.dir) })
	c.start()
	return c
}

func (c *volumeCell) start() { c.startCellIn(c.dir, "cell-1", c.args...) }

// run is a shell with a volume at /data.
func (c *volumeCell) run(mount executor.VolumeMount, script string) executor.RunInfo {
	mount.ContainerDir = "/data"
	return executor.RunInfo{RootFS: "host:", VolumeMounts: []executor.VolumeMount{mount}, Action: executor.Action{Run: &executor.RunAction{
		Path: "/bin/sh", Args: []string{"-c", "trap 'exit 0' TERM; " + script}, User: "nobody",
	}}}
}

const forever = "; sleep 1000 & wait"

// keep runs instances that have a volume.
func (c *volumeCell) keep(guid string, instances int, mount executor.VolumeMount, script string) {
	c.t.Helper()
	c.desire(lrp.DesiredLRP{ProcessGUID: guid, Domain: domain, Settings: lrp.Settings{Instances: instances}, Definition: lrp.Definition{
		Resources: executor.Resources{MemoryMB: 32, DiskMB: 16}, RunInfo: c.run(mount, script),
	}})
}

func (c *volumeCell) await(guid string, instances int, state lrp.State) (found []lrp.ActualLRP) {
	c.t.Helper()
	c.eventually(fmt.Sprintf("%d instances of %s are %v", instances, guid, state), func() (bool, error) {
		all, err := c.resolved(guid)
		for _, a := range all {
			if a.State != state {
				return false, fmt.Errorf("%d is %v: %v %s", a.Index, a.State, a.PlacementError, a.CrashReason)
			}
		}
		found = all
		return len(all) == instances, err
	})
	return found
}

// task is what a task leaves in its result, or why it has failed or could not
// begin.
func (c *volumeCell) task(guid string, mount executor.VolumeMount, script string) (result string) {
	c.t.Helper()
	if err := c.client.DesireTask(within(c.t), task.Desire{GUID: guid, Domain: domain, Definition: task.Definition{
		Resources: executor.Resources{MemoryMB: 32, DiskMB: 16}, ResultFile: "/tmp/result", RunInfo: c.run(mount, script),
	}}); err != nil {
		c.t.Fatal(err)
	}
	c.eventually("task "+guid+" ends", func() (bool, error) {
		t, err := c.client.Task(within(c.t), guid)
		if err != nil {
			return false, err
		}
		result = cmp.Or(t.FailureReason, t.RejectionReason, t.Result)
		return t.State == task.Completed || t.RejectionReason != "", nil
	})
	return result
}

// left waits until no other containers than those named have volumes, by the
// records of the cell and by the plugin.
func (c *volumeCell) left(guids ...string) {
	c.t.Helper()
	slices.Sort(guids)
	c.eventually(fmt.Sprintf("only %q have volumes", guids), func() (bool, error) {
		files, err := os.ReadDir(filepath.Join(c.dir, "manager", "volumes"))
		if err != nil {
			return false, err
		}
		recorded, mounted := []string{}, []string{}
		for _, f := range files {
			recorded = append(recorded, strings.TrimSuffix(f.Name(), ".json"))
		}
		for _, id := range c.plugin.Mounted() {
			mounted = append(mounted, id[:strings.LastIndexByte(id, '-')])
		}
		for _, guid := range mounted {
			if !slices.Contains(recorded, guid) {
				return false, fmt.Errorf("%s is mounted and not recorded", guid)
			}
		}
		if !slices.Equal(recorded, guids) {
			return false, fmt.Errorf("recorded are %q, and rclone has mounted for %q", recorded, mounted)
		}
		return true, nil
	})
}

func guidsOf(instances []lrp.ActualLRP) (guids []string) {
	for _, a := range instances {
		guids = append(guids, a.InstanceGUID)
	}
	return guids
}

func TestVolumesOutliveTheirContainersAndAreUnmountedOnEveryWayOut(t *testing.T) {
	t.Parallel()
	plugin := rclonetest.Start(t)
	c := newVolumeCell(t, plugin)
	offers := func(want ...string) {
		t.Helper()
		c.eventually(fmt.Sprintf("the cell offers %q", want), func() (bool, error) {
			cells, err := c.client.Cells(within(t))
			if err != nil || len(cells) != 1 {
				return false, err
			}
			if got := cells[0].VolumeDrivers; !slices.Equal(got, want) {
				return false, fmt.Errorf("it offers %q", got)
			}
			return true, nil
		})
	}
	offers("export", "local", "rclone")
	config, err := json.Marshal(map[string]string{"remote": t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	volume := func(driver, id, mode, config string) executor.VolumeMount {
		return executor.VolumeMount{Driver: driver, Mode: mode, Shared: &executor.SharedDevice{VolumeID: id, MountConfig: config}}
	}
	const look = "cat /data/0 /data/1 > /tmp/result; "
	for _, d := range []struct{ driver, id, config string }{{"local", "v", ""}, {"export", "rw", ""}, {"rclone", "v", string(config)}} {
		c.on(t, d.driver, func(t *testing.T) {
			rw, ro := volume(d.driver, d.id, executor.MountReadWrite, d.config), volume(d.driver, d.id, executor.MountReadOnly, d.config)

			// Two containers write, and others see it while they run and afterwards.
			c.keep(d.driver, 2, rw, "echo $INSTANCE_INDEX > /data/$INSTANCE_INDEX"+forever)
			c.await(d.driver, 2, lrp.Running)
			if d.driver == "rclone" {
				plugin.Hold(d.id)
			}
			const refused = "if touch /data/new || rm -f /data/0; then echo written >> /tmp/result; fi"
			if got := c.task(d.driver+"-reads", ro, look+refused); got != "0\n1\n" {
				t.Errorf("a task that may only read has the result %q", got)
			}
			c.left(guidsOf(c.await(d.driver, 2, lrp.Running))...)
			c.scale(d.driver, 0)
			c.left()
			if got := c.task(d.driver+"-fails", rw, "echo 2 > /data/2; exit 3"); !strings.Contains(got, "exit status 3") {
				t.Errorf("a task that fails: %q", got)
			}
			c.left()
			if got := c.task(d.driver+"-sees", ro, "cat /data/0 /data/1 /data/2 > /tmp/result"); got != "0\n1\n2\n" {
				t.Errorf("after its containers, the volume has %q", got)
			}
			c.keep(d.driver+"-crashes", 1, rw, "exit 4")
			c.await(d.driver+"-crashes", 1, lrp.Crashed)
			c.left()

			// The rep is killed while a container has the volume.
			c.scale(d.driver, 1)
			before := guidsOf(c.await(d.driver, 1, lrp.Running))
			c.left(before...)
			c.cells["cell-1"].kill()
			c.left(before...)
			c.start()
			c.eventually("another instance runs", func() (bool, error) {
				all, err := c.resolved(d.driver)
				return len(all) == 1 && all[0].State == lrp.Running && all[0].InstanceGUID != before[0], err
			})
			c.left(guidsOf(c.await(d.driver, 1, lrp.Running))...)
			c.scale(d.driver, 0)
			c.left()
		})
	}
	c.on(t, "a read-only export", func(t *testing.T) {
		if got := c.task("ro-reads", volume("export", "ro", executor.MountReadOnly, ""), look); got != "0\n1\n" {
			t.Errorf("the result is %q", got)
		}
		if got := c.task("ro-writes", volume("export", "ro", executor.MountReadWrite, ""), look); !strings.Contains(got, `the export "ro" is read-only`) {
			t.Errorf("a task that wants to write: %q", got)
		}
		c.left()
	})
	c.on(t, "the driver dies", func(t *testing.T) {
		c.scale("rclone", 2)
		held := c.await("rclone", 2, lrp.Running)
		c.left(guidsOf(held)...)
		plugin.Kill()
		offers("export", "local")
		c.scale("rclone", 1)
		c.eventually("the container is gone", func() (bool, error) {
			return len(c.containers("cell-1")) == 1, nil
		})
		plugin.Restart()
		offers("export", "local", "rclone")
		c.left(held[0].InstanceGUID)

		// The new rclone mounts the volume for one container, and is asked to unmount
		// it for another, of which it has never heard.
		c.scale("rclone", 2)
		c.left(guidsOf(c.await("rclone", 2, lrp.Running))...)
		plugin.Hold("v")
		if err := c.client.DeleteDeployment(within(t), "rclone"); err != nil {
			t.Fatal(err)
		}
		c.left()
		plugin.Release("v")
		if paths := plugin.Paths(); len(paths) > 0 {
			t.Errorf("still mounted are %q", paths)
		}
	})
	if all, err := list(c.client.ActualLRPs(within(t), storage.ActualLRPFilter{ProcessGUIDs: []string{"local", "export", "rclone"}})); err != nil || len(all) > 0 {
		t.Errorf("there are %v, %v", all, err)
	}
}
