package volumes_test

import (
	"testing"

	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/volumes"
	"github.com/diegosdk/diego/executor/volumes/volumetest"
	"github.com/diegosdk/diego/internal/rclonetest"
)

func TestAPluginOfOthersPassesTheSuite(t *testing.T) {
	plugin := rclonetest.Start(t)
	plugin.Create("one")
	plugin.Create("two")
	volumetest.Run(t, volumetest.Options{IDs: [2]string{"one", "two"}, New: func(testing.TB) manager.VolumeDriver {
		return volumes.NewPlugin(plugin.Socket)
	}})
	if left := plugin.Mounted(); len(left) != 0 {
		t.Errorf("still mounted are %q", left)
	}
}
