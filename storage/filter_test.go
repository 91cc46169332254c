package storage_test

import (
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// The suite compares lists with Match; here Match is compared with what a
// reader of its documentation expects.

func TestAFilterWantsRecordsThatSatisfyEveryField(t *testing.T) {
	r, d, tk := records()[2], deployment("p"), taskRecord("t") // p/3 RUNNING on cell-1
	for what, test := range map[string]struct{ got, want bool }{
		"no field":             {(&storage.ActualLRPFilter{}).Match(&r), true},
		"its guid":             {(&storage.ActualLRPFilter{ProcessGUIDs: []string{"q", "p"}}).Match(&r), true},
		"another guid":         {(&storage.ActualLRPFilter{ProcessGUIDs: []string{"P"}}).Match(&r), false},
		"its index":            {(&storage.ActualLRPFilter{Indices: []int{0, 3}}).Match(&r), true},
		"another index":        {(&storage.ActualLRPFilter{Indices: []int{0}}).Match(&r), false},
		"its cell":             {(&storage.ActualLRPFilter{CellIDs: []string{"cell-1"}}).Match(&r), true},
		"no cell":              {(&storage.ActualLRPFilter{CellIDs: []string{""}}).Match(&r), false},
		"its domain":           {(&storage.ActualLRPFilter{Domains: []string{"cf-apps"}}).Match(&r), true},
		"another domain":       {(&storage.ActualLRPFilter{Domains: []string{"x"}}).Match(&r), false},
		"its state":            {(&storage.ActualLRPFilter{States: []lrp.State{lrp.Running}}).Match(&r), true},
		"another state":        {(&storage.ActualLRPFilter{States: []lrp.State{lrp.Claimed}}).Match(&r), false},
		"its presence":         {(&storage.ActualLRPFilter{Presences: []lrp.Presence{lrp.Ordinary}}).Match(&r), true},
		"another presence":     {(&storage.ActualLRPFilter{Presences: []lrp.Presence{lrp.Suspect}}).Match(&r), false},
		"its guid, not cell":   {(&storage.ActualLRPFilter{ProcessGUIDs: []string{"p"}, CellIDs: []string{"x"}}).Match(&r), false},
		"deployment's guid":    {(&storage.DeploymentFilter{ProcessGUIDs: []string{"p"}}).Match(d), true},
		"another deployment":   {(&storage.DeploymentFilter{ProcessGUIDs: []string{"q"}}).Match(d), false},
		"deployment's domain":  {(&storage.DeploymentFilter{Domains: []string{"cf-apps"}}).Match(d), true},
		"not its domain":       {(&storage.DeploymentFilter{ProcessGUIDs: []string{"p"}, Domains: []string{"x"}}).Match(d), false},
		"task's cell":          {(&storage.TaskFilter{CellIDs: []string{"cell-1"}}).Match(tk), true},
		"task on another cell": {(&storage.TaskFilter{CellIDs: []string{"cell-2"}}).Match(tk), false},
		"task's domain":        {(&storage.TaskFilter{Domains: []string{"cf-tasks"}}).Match(tk), true},
		"task elsewhere":       {(&storage.TaskFilter{Domains: []string{"x"}}).Match(tk), false},
		"task's state":         {(&storage.TaskFilter{States: []task.State{task.Running}}).Match(tk), true},
		"task in other state":  {(&storage.TaskFilter{States: []task.State{task.Pending}}).Match(tk), false},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v, want %v", what, test.got, test.want)
		}
	}
}

func TestTheSubjectOfAnEventIsWhatItIsAbout(t *testing.T) {
	rs := records()
	held, free := &rs[2], &rs[0]
	d, tk := deployment("p"), taskRecord("t")
	crash := lrp.Event{Kind: lrp.InstanceCrashed, Before: held, After: free}
	quarantine := func(k storage.RecordKey) storage.Event {
		return storage.Event{Quarantine: &storage.Quarantine{Key: k}}
	}
	for _, test := range []struct {
		event storage.Event
		want  storage.Subject
	}{
		{storage.Event{LRP: &crash}, storage.Subject{Kind: "actual_lrp_crashed", ProcessGUID: "p", Index: 3, Domain: "cf-apps", CellBefore: "cell-1"}},
		{
			storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceCreated, After: held}},
			storage.Subject{Kind: "actual_lrp_instance_created", ProcessGUID: "p", Index: 3, Domain: "cf-apps", CellAfter: "cell-1"},
		},
		{
			storage.Event{LRP: &lrp.Event{Kind: lrp.DeploymentRemoved, DeploymentBefore: d}},
			storage.Subject{Kind: "lrp_deployment_removed", ProcessGUID: "p", Index: -1, Domain: "cf-apps"},
		},
		{
			storage.Event{LRP: &lrp.Event{Kind: lrp.DesiredCreated, DeploymentAfter: d}},
			storage.Subject{Kind: "desired_lrp_created", ProcessGUID: "p", Index: -1, Domain: "cf-apps"},
		},
		{
			storage.Event{Task: &task.Event{Kind: task.Changed, Before: tk, After: tk}},
			storage.Subject{Kind: "task_changed", Index: -1, TaskGUID: "t", Domain: "cf-tasks", CellBefore: "cell-1", CellAfter: "cell-1"},
		},
		{storage.Event{Domain: &storage.DomainEvent{Domain: "d", TTLNanoseconds: time.Hour}}, storage.Subject{Kind: "domain_upserted", Index: -1, Domain: "d"}},
		{quarantine(storage.ActualLRPKey(held)), storage.Subject{Kind: "record_quarantined", ProcessGUID: "p", Index: 3}},
		{quarantine(storage.DeploymentKey("p")), storage.Subject{Kind: "record_quarantined", ProcessGUID: "p", Index: -1}},
		{quarantine(storage.TaskKey("t")), storage.Subject{Kind: "record_quarantined", Index: -1, TaskGUID: "t"}},
		{
			storage.Event{Session: session(time.Time{})},
			storage.Subject{Kind: "session_began", ProcessGUID: "p", Index: 3, Domain: "cf-apps", CellBefore: "cell-1", CellAfter: "cell-1"},
		},
		{
			storage.Event{Session: &storage.SessionEvent{TaskGUID: "t", CellID: "cell-1", EndedAt: at}},
			storage.Subject{Kind: "session_ended", Index: -1, TaskGUID: "t", CellBefore: "cell-1", CellAfter: "cell-1"},
		},
		{storage.Event{}, storage.Subject{Index: -1}},
	} {
		if got := test.event.Subject(); got != test.want {
			t.Errorf("got %+v\nwant %+v", got, test.want)
		}
	}
}

func TestAnEventIsOfTheCellBeforeAndOfTheCellAfter(t *testing.T) {
	s := storage.Subject{Kind: "k", ProcessGUID: "p", Index: 1, TaskGUID: "t", Domain: "d", CellBefore: "a", CellAfter: "b"}
	for _, test := range []struct {
		filter storage.EventFilter
		want   bool
	}{
		{storage.EventFilter{}, true},
		{storage.EventFilter{CellIDs: []string{"a"}}, true},
		{storage.EventFilter{CellIDs: []string{"b"}}, true},
		{storage.EventFilter{CellIDs: []string{"c", ""}}, false},
		{storage.EventFilter{Kinds: []string{"k"}, ProcessGUIDs: []string{"p"}, Indices: []int{1}, TaskGUIDs: []string{"t"}, Domains: []string{"d"}}, true},
		{storage.EventFilter{Kinds: []string{"x"}}, false},
		{storage.EventFilter{ProcessGUIDs: []string{"x"}}, false},
		{storage.EventFilter{Indices: []int{0}}, false},
		{storage.EventFilter{TaskGUIDs: []string{"x"}}, false},
		{storage.EventFilter{Domains: []string{"x"}}, false},
	} {
		if got := test.filter.Match(&s); got != test.want {
			t.Errorf("%+v: %v, want %v", test.filter, got, test.want)
		}
	}
}

func TestABareTaskSaysWhereItRunsAndHasNothingLarge(t *testing.T) {
	whole := taskRecord("t")
	whole.State, whole.Result, whole.RejectionCount = task.Completed, strings.Repeat("r", task.MaxResultBytes), 2
	whole.VolumeMountedFiles = []executor.File{{Path: "f", Content: strings.Repeat("x", 1<<20)}}
	bare := storage.BareTask(whole)
	data, err := storage.Encode(bare)
	if err != nil || len(data) > 1024 {
		t.Errorf("a bare task of a definition of 1 MiB has %d bytes, want at most 1024; %v", len(data), err)
	}
	if bare.GUID != whole.GUID || bare.State != whole.State || bare.InstanceGUID != whole.InstanceGUID || bare.Attempt() != whole.Attempt() {
		t.Errorf("bare: %+v", bare)
	}
	if whole.RootFS == "" || whole.Result == "" {
		t.Error("the whole task has changed")
	}
}

func TestABareDeploymentHasTheIDsOfItsDefinitionsOnly(t *testing.T) {
	d := deployment("p")
	bare := storage.Bare(d)
	if len(bare.Definitions) != 1 || bare.Definitions["d"].RootFS != "" || bare.Routes != nil || bare.Instances != d.Instances {
		t.Errorf("bare: %+v", bare)
	}
	if d.Definitions["d"].RootFS == "" {
		t.Error("the whole deployment has changed")
	}
}
