package apidocs

import (
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// Sample returns an example of a type. Members of the same name have the same
// value in all examples, so the documentation speaks of one process, one cell
// and one task.
func Sample(t reflect.Type) any {
	v := reflect.New(t).Elem()
	fill(v, "")
	return v.Interface()
}

var at = time.Unix(1_767_225_600, 0).UTC() // the first of January 2026

// fixed are the types whose fields cannot be filled one by one.
var fixed = map[reflect.Type]any{
	reflect.TypeFor[time.Time]():          at,
	reflect.TypeFor[time.Duration]():      2 * time.Minute,
	reflect.TypeFor[json.RawMessage]():    json.RawMessage(`[{"hostname":"web.example"}]`),
	reflect.TypeFor[lrp.Settings]():       lrp.Settings{Instances: 3, Routes: lrp.Routes{"router": json.RawMessage(`[{"hostname":"web.example"}]`)}},
	reflect.TypeFor[lrp.Definition]():     lrp.Definition{Resources: executor.Resources{MemoryMB: 128, DiskMB: 256}, RunInfo: runInfo("/app")},
	reflect.TypeFor[task.Definition]():    task.Definition{Resources: executor.Resources{MemoryMB: 64, DiskMB: 64}, RunInfo: runInfo("/migrate")},
	reflect.TypeFor[executor.Container](): container(),
	reflect.TypeFor[lrp.PlacementError](): lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: "of 12 cells 12 short of memory"},
	reflect.TypeFor[lrp.State]():          lrp.Running,
	reflect.TypeFor[lrp.Presence]():       lrp.Ordinary,
	reflect.TypeFor[lrp.UpdateStrategy](): lrp.Rolling,
	reflect.TypeFor[task.State]():         task.Running,
	reflect.TypeFor[auction.Kind]():       auction.LRP,
	reflect.TypeFor[auction.Score]():      auction.Score{ZoneInstances: 1, Memory: 0.25, Disk: 0.125, Containers: 0.01},
	reflect.TypeFor[lrp.ActualLRP]():      actualLRP(),
	reflect.TypeFor[storage.Event]():      event(),
	reflect.TypeFor[lrp.Event]():          *event().LRP,
	reflect.TypeFor[storage.SessionEvent](): storage.SessionEvent{
		ID: "5d0c", Kind: storage.SessionExec, ProcessGUID: "web", Index: ptr(0), Domain: "apps", CellID: "cell-1", InstanceGUID: "a3f1",
		Caller: "alice", Command: []string{"ls", "/tmp"}, BeganAt: at, EndedAt: at.Add(time.Second), End: "exit status 0",
	},
	reflect.TypeFor[bbs.TimelineEntry]():        bbs.TimelineEntry{At: at, Sequence: 4712, Text: "crashed: exit status 137", Event: *event().LRP},
	reflect.TypeFor[lrp.Update]():               lrp.Update{Instances: ptr(5)},
	reflect.TypeFor[executor.ModificationTag](): executor.ModificationTag{Epoch: at.UnixNano(), Index: 2},
	reflect.TypeFor[auction.CellReason]():       auction.LacksMemory,
	reflect.TypeFor[rep.EvacuationStatus](): rep.EvacuationStatus{
		Evacuating: true, BeganAt: at, Deadline: at.Add(10 * time.Minute), Containers: 1,
		Waiting: []string{"web/0: its replacement starts on cell \"cell-2\""},
	},
	reflect.TypeFor[bbs.Lock]():       bbs.Lock{Name: "router", Owner: "router-1 K7XQ", Value: "10.0.0.7", Epoch: 3, ExpiresAt: at},
	reflect.TypeFor[rep.LogRequest](): rep.LogRequest{ContainerGUID: "a3f1", Stream: "stdout", Follow: true},
	reflect.TypeFor[lrp.Deployment](): lrp.Deployment{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 3},
		Definitions:        map[string]lrp.Definition{"v1": {Resources: executor.Resources{MemoryMB: 128, DiskMB: 256}, RunInfo: runInfo("/app")}},
		ActiveDefinitionID: "v1", HealthyDefinitionID: "v1", ModificationTag: executor.ModificationTag{Epoch: at.UnixNano(), Index: 2},
	},
	reflect.TypeFor[task.Task](): task.Task{
		GUID: "job", Domain: "apps", Definition: task.Definition{Resources: executor.Resources{MemoryMB: 64, DiskMB: 64}, RunInfo: runInfo("/migrate")},
		State: task.Running, CellID: "cell-1", InstanceGUID: "a3f1", CreatedAt: at, UpdatedAt: at.Add(time.Second),
		ModificationTag: executor.ModificationTag{Epoch: at.UnixNano(), Index: 1},
	},
	reflect.TypeFor[lrp.RolloutStatus]():        lrp.RolloutStatus{Done: 1, Pending: 2, HeldBy: 1, WaitsFor: lrp.WaitStart},
	reflect.TypeFor[lrp.RolloutFailure]():       lrp.RolloutFailure{DefinitionID: "v2", Kind: lrp.RolloutCrashed, Detail: "exit status 1"},
	reflect.TypeFor[lrp.RolloutState]():         lrp.RolloutState{From: "v1"},
	reflect.TypeFor[task.Complete]():            task.Complete{CellID: "cell-1", InstanceGUID: "a3f1", Result: "42"},
	reflect.TypeFor[storage.DeploymentFilter](): storage.DeploymentFilter{Domains: []string{"apps"}},
	reflect.TypeFor[storage.ActualLRPFilter]():  storage.ActualLRPFilter{ProcessGUIDs: []string{"web"}},
	reflect.TypeFor[storage.TaskFilter]():       storage.TaskFilter{Domains: []string{"apps"}},
	reflect.TypeFor[auction.Item]():             item(),
	reflect.TypeFor[auction.Result](): auction.Result{
		Placements: []auction.Placement{{Item: ptr(item()), Choice: auction.Choice{CellID: "cell-1", Score: auction.Score{Memory: 0.25}}}},
		Refusals:   []auction.Refusal{},
	},
	reflect.TypeFor[auction.CellState](): auction.CellState{
		ID: "cell-1", Zone: "z1", Total: auction.Capacity{MemoryMB: 16384, DiskMB: 65536, Containers: 256},
		Remaining: auction.Capacity{MemoryMB: 12288, DiskMB: 60000, Containers: 240}, RootFSProviders: []string{"preloaded:linux"},
		LRPs: []lrp.Key{{ProcessGUID: "web", DefinitionID: "v1", Index: 0, Domain: "apps"}},
	},
}

func ptr[T any](v T) *T { return &v }

func runInfo(path string) executor.RunInfo {
	return executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: path, User: "vcap"}}}
}

func actualLRP() lrp.ActualLRP {
	return lrp.ActualLRP{
		Key:         lrp.Key{ProcessGUID: "web", DefinitionID: "v1", Index: 0, Domain: "apps"},
		InstanceKey: lrp.InstanceKey{InstanceGUID: "a3f1", CellID: "cell-1"},
		NetInfo:     lrp.NetInfo{Address: "10.0.0.5", Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: 61001}}},
		State:       lrp.Running, Since: at, RunningSince: at, Routable: true, Zone: "z1",
		ModificationTag: executor.ModificationTag{Epoch: at.UnixNano(), Index: 2},
	}
}

func event() storage.Event {
	before, after := actualLRP(), actualLRP()
	after.InstanceKey, after.NetInfo, after.State, after.Routable, after.RunningSince = lrp.InstanceKey{}, lrp.NetInfo{}, lrp.Unclaimed, false, time.Time{}
	after.CrashCount, after.CrashReason = 1, "exit status 137"
	return storage.Event{Sequence: 4712, At: at, LRP: &lrp.Event{
		Kind: lrp.InstanceCrashed, Before: &before, After: &after, Cause: executor.Cause{Command: "Crash", Detail: "exit status 137"},
	}}
}

func container() executor.Container {
	return executor.Container{
		GUID: "a3f1", Tags: map[string]string{"lifecycle": "lrp"}, Resources: executor.Resources{MemoryMB: 128, DiskMB: 256},
		State: executor.Running, AllocatedAt: at, Since: at,
	}
}

func item() auction.Item {
	return auction.Item{
		Key:       auction.Key{Kind: auction.LRP, GUID: "web", Domain: "apps", Index: 0, DefinitionID: "v1"},
		Resources: executor.Resources{MemoryMB: 128, DiskMB: 256}, RootFS: "preloaded:linux", QueuedAt: at,
	}
}

// texts are the values of text members, by their names.
var texts = map[string]string{
	"process_guid": "web", "definition_id": "v1", "domain": "apps", "task_guid": "job", "cell_id": "cell-1",
	"instance_guid": "a3f1", "container_guid": "a3f1", "owner": "cell-1 run 7", "reason": "exit status 1", "failure_reason": "",
	"address": "https://10.0.0.5:8443", "zone": "z1", "stream": "stdout", "rootfs_providers": "preloaded:linux",
	"volume_drivers": "nfs", "placement_tags": "", "optional_placement_tags": "", "missing_cell": "",
	"text": "crashed: exit status 137", "command": "Crash", "detail": "exit status 137", "instance_address": "",
	"name": "router", "process_guids": "web", "domains": "apps", "cell_ids": "cell-1",
}

// numbers are the values of numbers, by their names.
var numbers = map[string]int64{
	"index": 0, "memory_mb": 16384, "disk_mb": 65536, "containers": 256, "container_port": 8080, "host_port": 61001,
	"oldest": 1, "newest": 4712, "sequence": 4712, "next": 6, "epoch": 1_767_225_600_000_000_000,
}

// fill sets v, the value of a member of that name.
func fill(v reflect.Value, name string) {
	if f, ok := fixed[v.Type()]; ok {
		v.Set(reflect.ValueOf(f))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), name)
	case reflect.Struct:
		for i := range v.NumField() {
			member, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			if v.Type().Field(i).IsExported() && member != "-" {
				fill(v.Field(i), member)
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("hello\n"))
			return
		}
		if text, known := texts[name]; known && text == "" {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0), name)
	case reflect.String:
		v.SetString(texts[name])
	case reflect.Int, reflect.Int64:
		v.SetInt(numbers[name])
	case reflect.Uint16:
		v.SetUint(uint64(numbers[name]))
	case reflect.Bool:
		v.SetBool(name != "unready" && name != "failed")
	}
}
