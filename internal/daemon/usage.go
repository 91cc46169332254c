package daemon

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep"
)

// publishUsage puts on each page of figures what the containers of a cell use.
func publishUsage(figures *httpapi.Prometheus, cell rep.Meter) {
	figures.Collect = func() {
		usages, err := cell.Usages(context.Background())
		if err != nil {
			return // a cell of this process always answers
		}
		for _, f := range usageFigures {
			samples := make([]httpapi.Sample, 0, len(usages))
			for i := range usages {
				if v := f.of(&usages[i]); v >= 0 {
					samples = append(samples, httpapi.Sample{Labels: usageLabels(&usages[i]), Value: v})
				}
			}
			figures.Replace(f.name, samples)
		}
	}
}

// usageFigures are the figures of each container. One below 0 is left out: it is not
// known, or there is no limit.
var usageFigures = []struct {
	name string
	of   func(*rep.ContainerUsage) float64
}{
	{"container_cpu_seconds_total", func(u *rep.ContainerUsage) float64 { return float64(u.CPU) / float64(time.Second) }},
	{"container_memory_bytes", func(u *rep.ContainerUsage) float64 { return float64(u.MemoryBytes) }},
	{"container_memory_limit_bytes", func(u *rep.ContainerUsage) float64 { return limit(u.MemoryLimitBytes) }},
	{"container_disk_bytes", func(u *rep.ContainerUsage) float64 { return float64(u.DiskBytes) }},
	{"container_disk_limit_bytes", func(u *rep.ContainerUsage) float64 { return limit(u.DiskLimitBytes) }},
	{"container_pids", func(u *rep.ContainerUsage) float64 { return float64(u.PIDs) }},
	{"container_received_bytes_total", func(u *rep.ContainerUsage) float64 { return float64(u.ReceivedBytes) }},
	{"container_sent_bytes_total", func(u *rep.ContainerUsage) float64 { return float64(u.SentBytes) }},
}

func limit(n int64) float64 {
	if n == 0 {
		return -1
	}
	return float64(n)
}

// maxTagBytes bounds the names and texts of all tags of a container. Tenants choose them,
// and each figure of each container repeats them.
const maxTagBytes = 4 << 10

// usageLabels are the metric tags of a container, the first by name if they are too long
// together, and the index of an instance.
func usageLabels(u *rep.ContainerUsage) []auction.Label {
	labels := make([]auction.Label, 0, len(u.Tags)+1)
	left := maxTagBytes
	for _, name := range slices.Sorted(maps.Keys(u.Tags)) {
		if left -= len(name) + len(u.Tags[name]); left < 0 {
			break
		}
		labels = append(labels, auction.Label{Name: name, Value: u.Tags[name]})
	}
	if _, taken := u.Tags["instance_id"]; u.Index != nil && !taken {
		labels = append(labels, auction.Label{Name: "instance_id", Value: strconv.Itoa(*u.Index)})
	}
	return labels
}
