package storagetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// begin is the moment at which the suite's records are made.
var begin = time.Unix(1_800_000_000, 123_456_789).UTC()

// A fixture is a store with what cases have in common.
type fixture struct {
	testing.TB
	Harness
	ctx context.Context
	// now is the callers' clock, which the store does not know.
	now time.Time
}

func newFixture(t testing.TB, open Open, o Options) *fixture {
	t.Helper()
	h := open(t, o)
	t.Cleanup(func() {
		if err := h.Store.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return &fixture{TB: t, Harness: h, ctx: context.Background(), now: begin}
}

// pass lets d pass by the store's clock.
func (f *fixture) pass(d time.Duration) {
	f.Helper()
	if f.Advance != nil {
		f.Advance(d)
		return
	}
	start := f.storeNow()
	for f.storeNow().Sub(start) < d {
		<-time.After(time.Millisecond)
	}
}

// ttl is a time that passes quickly enough.
func (f *fixture) ttl() time.Duration {
	if f.Advance != nil {
		return time.Minute
	}
	return 100 * time.Millisecond
}

func (f *fixture) storeNow() time.Time {
	f.Helper()
	now, err := f.Store.Now(f.ctx)
	f.must(err)
	return now
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) commit(b storage.Batch) storage.Cursor {
	f.Helper()
	cursor, err := f.Store.Commit(f.ctx, b)
	f.must(err)
	return cursor
}

// refused wants the commit to fail with every one of the errors.
func (f *fixture) refused(b storage.Batch, want ...error) error {
	f.Helper()
	_, err := f.Store.Commit(f.ctx, b)
	for _, w := range want {
		if !errors.Is(err, w) {
			f.Fatalf("commit: %v, want an error that is %q", err, w)
		}
	}
	return err
}

// conflict wants the commit to fail because of the record at key.
func (f *fixture) conflict(b storage.Batch, key storage.RecordKey, want error) {
	f.Helper()
	err := f.refused(b, storage.ErrConflict, want)
	var conflict *storage.ConflictError
	if !errors.As(err, &conflict) || conflict.Key != key {
		f.Fatalf("commit: %v, want a conflict about %v", err, key)
	}
	for _, other := range []error{storage.ErrExists, storage.ErrNotFound} {
		if want != other && errors.Is(err, other) {
			f.Fatalf("commit: %v, which should not be %q", err, other)
		}
	}
}

// all collects a list that has no error.
func all[T any](f *fixture, list iter.Seq2[T, error]) []T {
	f.Helper()
	var out []T
	for v, err := range list {
		f.must(err)
		out = append(out, v)
	}
	return out
}

// names maps a list.
func names[T any](list []T, name func(T) string) string {
	var out []string
	for _, v := range list {
		out = append(out, name(v))
	}
	return strings.Join(out, " ")
}

func lrpName(r lrp.ActualLRP) string {
	return fmt.Sprintf("%s/%d/%s/%v", r.ProcessGUID, r.Index, r.DefinitionID, r.Presence)
}

func (f *fixture) lrps(filter storage.ActualLRPFilter) []lrp.ActualLRP {
	f.Helper()
	return all(f, f.Store.ActualLRPs(f.ctx, filter))
}

func (f *fixture) deployments(filter storage.DeploymentFilter) []*lrp.Deployment {
	f.Helper()
	return all(f, f.Store.Deployments(f.ctx, filter))
}

func (f *fixture) tasks(filter storage.TaskFilter) []*task.Task {
	f.Helper()
	return all(f, f.Store.Tasks(f.ctx, filter))
}

func (f *fixture) events(after storage.Cursor, filter storage.EventFilter) []storage.Event {
	f.Helper()
	return all(f, f.Store.Events(f.ctx, after, filter))
}

func (f *fixture) log() storage.Extent {
	f.Helper()
	extent, err := f.Store.Log(f.ctx)
	f.must(err)
	return extent
}

// records are all records.
func (f *fixture) records() []any {
	f.Helper()
	return []any{
		f.deployments(storage.DeploymentFilter{}), f.lrps(storage.ActualLRPFilter{}), f.tasks(storage.TaskFilter{}),
		all(f, f.Store.Domains(f.ctx)),
	}
}

// everything is all records and the log's extent, to see that nothing changed.
func (f *fixture) everything() any {
	f.Helper()
	return append(f.records(), f.log())
}

func (f *fixture) same(what string, got, want any) {
	f.Helper()
	if !Equal(got, want) {
		f.Fatalf("%s:\n got %s\nwant %s", what, show(got), show(want))
	}
}

// The records below are made for a purpose; RunConcurrent and RunMetamorphic
// have those that Step makes.

func tag(epoch int) lrp.ModificationTag {
	return lrp.ModificationTag{Epoch: begin.UnixNano() + int64(epoch)}
}

func unclaimed(guid string, index int) *lrp.ActualLRP {
	return &lrp.ActualLRP{
		Key:   lrp.Key{ProcessGUID: guid, DefinitionID: "d", Index: index, Domain: "domain"},
		State: lrp.Unclaimed, Since: begin, ModificationTag: tag(0),
	}
}

func running(guid string, index int, cell string) *lrp.ActualLRP {
	r := unclaimed(guid, index)
	r.State, r.RunningSince = lrp.Running, begin.Add(time.Second)
	r.InstanceKey = lrp.InstanceKey{InstanceGUID: fmt.Sprintf("%s-%d", guid, index), CellID: cell}
	r.NetInfo = lrp.NetInfo{Address: "10.0.0.1", Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: 61000}}}
	r.Routable, r.Zone = true, "z1"
	return r
}

// next is a copy of r with its next tag, changed.
func next(r *lrp.ActualLRP, change func(*lrp.ActualLRP)) *lrp.ActualLRP {
	n := *r
	n.ModificationTag = r.ModificationTag.Next()
	if change != nil {
		change(&n)
	}
	return &n
}

// shapes are ActualLRPs that together set every field to something.
func shapes() []*lrp.ActualLRP {
	all := []*lrp.ActualLRP{
		unclaimed("p", 0), running("p", 1, "cell-1"), running("p", 2, "cell-1"), running("p", 3, "cell-2"), running("p", 4, "cell-2"), unclaimed("p", 5),
	}
	all[0].PlacementError = lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: "memory: 12 MB short"}
	all[0].CrashCount, all[0].CrashReason = 200, "exit status 137\x00\nout of memory"
	all[1].Ports = append(all[1].Ports, lrp.PortMapping{ContainerPort: 65535, HostPort: 1})
	all[1].InstanceAddress, all[1].Routable, all[1].Zone = "fd00::1", false, ""
	all[2].Presence, all[2].ExpiresAt = lrp.Evacuating, begin.Add(10*time.Minute+time.Nanosecond)
	all[3].Presence = lrp.Suspect
	all[3].Stopping = begin.Add(time.Minute + time.Nanosecond)
	all[4].State, all[4].RunningSince, all[4].NetInfo = lrp.Claimed, time.Time{}, lrp.NetInfo{}
	all[4].Routable, all[4].Zone = false, ""
	all[5].State = lrp.Crashed
	for i, r := range all {
		r.ModificationTag = lrp.ModificationTag{Epoch: begin.UnixNano() + int64(i), Index: int64(i) * 1_000_000_007}
	}
	return all
}

func runInfo() executor.RunInfo {
	return executor.RunInfo{
		RootFS: "preloaded:linux",
		Env:    []executor.EnvVar{{Name: "GREETING", Value: "grüß <dich> & 🙂"}},
		Action: executor.Action{Run: &executor.RunAction{Path: "/bin/app", Args: []string{"-v"}, User: "vcap"}},
		Ports:  []uint16{8080, 2222},
	}
}

func deployment(guid string) *lrp.Deployment {
	return &lrp.Deployment{
		ProcessGUID: guid, Domain: "domain", UpdateStrategy: lrp.Recreate,
		Settings: lrp.Settings{
			Instances: 3, Routes: lrp.Routes{"http": []byte(`{"hosts":["a.example","<b>"]}`)}, Annotation: "for humans",
			Labels: map[string]string{"team": "blog", "tier": "web"},
			Policies: lrp.Policies{
				Restart:    &lrp.RestartPolicy{ImmediateRestarts: 1, MaxRestarts: -1, MinBackoff: time.Minute},
				Rollout:    &lrp.RolloutPolicy{MinHealthy: time.Second, MaxInFlight: 2, Canary: 1, OnFailure: lrp.RollBackOnFailure, Deadline: time.Minute},
				Disruption: &lrp.Disruption{MaxUnavailable: 2},
			},
			MetricTags: map[string]lrp.MetricTag{"source_id": {Static: guid}}, ImageUsername: "u", ImagePassword: "p",
		},
		Definitions: map[string]lrp.Definition{
			"d": {Resources: executor.Resources{MemoryMB: 64, DiskMB: 128, MaxPIDs: 32, Extra: executor.Amounts{"gpu": 2}}, RunInfo: runInfo(), PlacementTags: []string{"ssd"}},
		},
		ActiveDefinitionID: "d", ModificationTag: tag(0),
		RolloutState: lrp.RolloutState{
			From: "d", Paused: lrp.PausedByFailure, ResumedAt: begin, Proved: true, Confirmed: true,
			Failure: &lrp.RolloutFailure{DefinitionID: "d", Kind: lrp.RolloutLate, Index: 3, Detail: "no compatible cell"},
		},
	}
}

// nextDeployment is a copy of d with its next tag, changed.
func nextDeployment(d *lrp.Deployment, change func(*lrp.Deployment)) *lrp.Deployment {
	n := *d
	n.ModificationTag = d.ModificationTag.Next()
	if change != nil {
		change(&n)
	}
	return &n
}

func pending(guid string) *task.Task {
	return &task.Task{
		GUID: guid, Domain: "domain", State: task.Pending,
		Definition: task.Definition{
			Resources: executor.Resources{MemoryMB: 64, Extra: executor.Amounts{"gpu": 1}}, RunInfo: runInfo(), PlacementTags: []string{"ssd"},
			ResultFile: "/tmp/result", CompletionCallbackURL: "https://example.com/done", Annotation: "for humans",
			Labels: map[string]string{"team": "blog"},
		},
		CreatedAt: begin, UpdatedAt: begin, ModificationTag: tag(0),
	}
}

func nextTask(t *task.Task, change func(*task.Task)) *task.Task {
	n := *t
	n.ModificationTag = t.ModificationTag.Next()
	if change != nil {
		change(&n)
	}
	return &n
}

// Short forms of batches.

func lrpWrite(before, after *lrp.ActualLRP) storage.Batch {
	return storage.Batch{ActualLRPs: []lrp.Write{{Before: before, After: after}}}
}

func deploymentWrite(before, after *lrp.Deployment) storage.Batch {
	return storage.Batch{Deployments: []storage.DeploymentWrite{{Before: before, After: after}}}
}

func taskWrite(before, after *task.Task) storage.Batch {
	return storage.Batch{Tasks: []task.Write{{Before: before, After: after}}}
}

func created(r *lrp.ActualLRP) storage.Event {
	return storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceCreated, After: r, Cause: lrp.Cause{Command: "Test"}}}
}

// createAll creates records in one batch.
func (f *fixture) createAll(records ...*lrp.ActualLRP) {
	f.Helper()
	var b storage.Batch
	for _, r := range records {
		b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: r})
	}
	f.commit(b)
}

// recall is the slot from memory, after it was read; ok is false if the store
// remembers none.
func (f *fixture) recall(guid string, index int) (r storage.Recollection, ok bool) {
	f.Helper()
	_, _, err := f.Store.Slot(f.ctx, guid, index)
	f.must(err)
	if r, ok = storage.Recall(f.Store, guid, index); !ok {
		f.Log("left out: the store remembers no slots")
	}
	return r, ok
}
