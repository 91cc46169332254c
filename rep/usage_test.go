package rep

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
)

func TestAUsageSaysWhoseItIs(t *testing.T) {
	zero := 0
	used := executor.Usage{MemoryBytes: 5, DiskBytes: executor.Unknown, PIDs: 3, CPU: time.Second, ReceivedBytes: 7, SentBytes: 8}
	usage := func(edit func(*ContainerUsage)) ContainerUsage {
		u := ContainerUsage{
			ContainerGUID: "c", CPU: time.Second, Cores: executor.Unknown, MemoryBytes: 5, MemoryLimitBytes: 64 << 20, DiskBytes: executor.Unknown,
			PIDs: 3, MaxPIDs: 10, ReceivedBytes: 7, SentBytes: 8, ReceivedPerSecond: executor.Unknown, SentPerSecond: executor.Unknown,
		}
		edit(&u)
		return u
	}
	for _, test := range []struct {
		name, metricsGUID string
		tags              map[string]string
		want              ContainerUsage
	}{
		{"an instance", "", map[string]string{executor.TagLifecycle: executor.LifecycleLRP, executor.TagProcessGUID: "web", executor.TagProcessIndex: "0", executor.TagDomain: "apps"},
			usage(func(u *ContainerUsage) {
				u.ProcessGUID, u.Index, u.Domain, u.Tags = "web", &zero, "apps", map[string]string{"source_id": "web"}
			})},
		{"an instance with a metrics_guid", "figures", map[string]string{executor.TagLifecycle: executor.LifecycleLRP, executor.TagProcessGUID: "web", executor.TagProcessIndex: "0"},
			usage(func(u *ContainerUsage) {
				u.ProcessGUID, u.Index, u.Tags = "web", &zero, map[string]string{"source_id": "figures"}
			})},
		{"a task", "", map[string]string{executor.TagLifecycle: executor.LifecycleTask, executor.TagTaskGUID: "job", executor.TagTaskAttempt: "1.0"},
			usage(func(u *ContainerUsage) { u.TaskGUID, u.Tags = "job", map[string]string{"source_id": "job"} })},
		{"a self-test", "", map[string]string{executor.TagLifecycle: executor.LifecycleSelfTest}, usage(func(u *ContainerUsage) { u.Tags = map[string]string{"source_id": ""} })},
	} {
		got := UsageOf("c", test.metricsGUID, test.tags, executor.Resources{MemoryMB: 64, MaxPIDs: 10}, used)
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}
