package rep

import (
	"maps"

	"github.com/diegosdk/diego/executor"
)

// UsageOf returns what a container uses and may use. The tags say which
// instance or task it is, and metricsGUID is that of its definition. The result
// has no time and no rates.
func UsageOf(containerGUID, metricsGUID string, tags map[string]string, r executor.Resources, used executor.Usage) ContainerUsage {
	u := ContainerUsage{
		ContainerGUID: containerGUID, Domain: tags[executor.TagDomain], CPU: used.CPU,
		MemoryBytes: used.MemoryBytes, MemoryLimitBytes: r.MemoryMB << 20,
		DiskBytes: used.DiskBytes, DiskLimitBytes: r.DiskMB << 20,
		PIDs: used.PIDs, MaxPIDs: r.MaxPIDs,
		ReceivedBytes: used.ReceivedBytes, SentBytes: used.SentBytes,
		Cores: executor.Unknown, ReceivedPerSecond: executor.Unknown, SentPerSecond: executor.Unknown,
	}
	source := ""
	switch s, ours := subjectOf(executor.Container{GUID: containerGUID, Tags: tags}); {
	case !ours:
	case s.isTask():
		u.TaskGUID, source = s.task, s.task
	default:
		u.ProcessGUID, u.Index, source = s.key.ProcessGUID, &s.key.Index, s.key.ProcessGUID
	}
	u.Tags = map[string]string{"source_id": source}
	maps.Copy(u.Tags, LabelsOf(containerGUID, "", metricsGUID, tags).Tags)
	return u
}
