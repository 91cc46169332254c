package volumes_test

import (
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/volumes"
	"github.com/diegosdk/diego/executor/volumes/volumetest"
	"github.com/diegosdk/diego/internal/rclonetest"
)

func TestAPluginOfOthersPassesTheSuite(t *testing.T) {
	plugin := rclonetest.Start(t)
	names := [2]string{"one", "two"}
	for _, name := range names {
		plugin.Create(name)
		plugin.Hold(name)
	}
	volumetest.Run(t, volumetest.Options{IDs: names, New: func(testing.TB) manager.VolumeDriver {
		return volumes.NewPlugin(plugin.Socket)
	}})
	if left := plugin.Mounted(); len(left) != 0 {
		t.Errorf("still mounted are %q", left)
	}
	plugin.Release(names[0])
	if left := plugin.Paths(); len(left) != 1 || filepath.Base(left[0]) != names[1] {
		t.Errorf("mounted are %q, want %s alone, which the test holds", left, names[1])
	}
}
