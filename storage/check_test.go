package storage_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// fields are the members of a batch with one record of each kind that hold
// text or a time, and how to set them.
type fields struct {
	identifiers, texts map[string]*string
	times              map[string]*time.Time
}

// settable is a well-formed batch and its fields.
func settable() (storage.Batch, fields) {
	r := records()[3] // EVACUATING has most
	d := deployment("p")
	tk := taskRecord("t")
	b := storage.Batch{
		ActualLRPs:  []lrp.Write{{After: &r}},
		Deployments: []storage.DeploymentWrite{{After: d}},
		Tasks:       []task.Write{{After: tk}},
		Domains:     []storage.DomainWrite{{Name: "d"}},
		RequestID:   "r",
	}
	return b, fields{
		identifiers: map[string]*string{
			"actual_lrps[0].process_guid": &r.ProcessGUID, "actual_lrps[0].definition_id": &r.DefinitionID,
			"actual_lrps[0].domain": &r.Domain, "actual_lrps[0].instance_guid": &r.InstanceGUID,
			"actual_lrps[0].cell_id": &r.CellID, "actual_lrps[0].zone": &r.Zone,
			"deployments[0].process_guid": &d.ProcessGUID, "deployments[0].domain": &d.Domain,
			"tasks[0].task_guid": &tk.GUID, "tasks[0].domain": &tk.Domain,
			"tasks[0].cell_id": &tk.CellID, "tasks[0].instance_guid": &tk.InstanceGUID,
			"domains[0].name": &b.Domains[0].Name,
		},
		texts: map[string]*string{
			"actual_lrps[0].crash_reason": &r.CrashReason, "actual_lrps[0].address": &r.Address,
			"actual_lrps[0].instance_address": &r.InstanceAddress, "deployments[0].annotation": &d.Annotation,
			"tasks[0].failure_reason": &tk.FailureReason, "tasks[0].rejection_reason": &tk.RejectionReason,
			"tasks[0].result": &tk.Result, "tasks[0].annotation": &tk.Annotation,
		},
		times: map[string]*time.Time{
			"actual_lrps[0].since": &r.Since, "actual_lrps[0].running_since": &r.RunningSince, "actual_lrps[0].expires_at": &r.ExpiresAt,
			"tasks[0].created_at": &tk.CreatedAt, "tasks[0].updated_at": &tk.UpdatedAt, "tasks[0].first_completed_at": &tk.FirstCompletedAt,
		},
	}
}

// refusedField wants the batch to be refused because of that field.
func refusedField(t *testing.T, what, field string, err error) {
	t.Helper()
	var invalid *executor.ValidationError
	if !errors.As(err, &invalid) {
		t.Errorf("%s in %s: %v, want a validation error", what, field, err)
		return
	}
	for _, f := range invalid.Fields {
		if f.Field == field {
			return
		}
	}
	t.Errorf("%s in %s: %v, which does not name the field", what, field, err)
}

func TestAWellFormedBatchIsAccepted(t *testing.T) {
	b, f := settable()
	for _, text := range f.identifiers {
		*text = strings.Repeat("🙂", storage.MaxIdentifierBytes/4)
	}
	for _, text := range f.texts {
		*text = "line\x00one\nand two"
	}
	for _, at := range f.times {
		*at = time.Date(2262, 1, 1, 0, 0, 0, 1, time.UTC)
	}
	if err := b.Check(); err != nil {
		t.Error(err)
	}
}

func TestCheckNamesTheFieldThatIsWrong(t *testing.T) {
	_, shape := settable()
	for field := range shape.identifiers {
		for what, value := range map[string]string{
			"too many bytes": strings.Repeat("x", storage.MaxIdentifierBytes+1), "NUL": "a\x00", "half a character": "\xf0\x9f",
		} {
			b, f := settable()
			*f.identifiers[field] = value
			refusedField(t, what, field, b.Check())
		}
	}
	for field := range shape.texts {
		b, f := settable()
		*f.texts[field] = "half \xf0\x9f"
		refusedField(t, "half a character", field, b.Check())
	}
	for field := range shape.times {
		for what, value := range map[string]time.Time{
			"another zone": at.In(time.FixedZone("", 60)), "a monotonic reading": time.Now(),
			"a time too early": time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC), "a time too late": time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC),
		} {
			b, f := settable()
			*f.times[field] = value
			refusedField(t, what, field, b.Check())
		}
	}
}

func TestCheckRefusesWhatDoesNotBelongTogether(t *testing.T) {
	d, e := deployment("p"), deployment("q")
	tk, other := taskRecord("t"), taskRecord("u")
	r := records()
	moved := r[1]
	moved.Index++
	untagged := r[1]
	untagged.CrashCount++
	event := storage.Event{Domain: &storage.DomainEvent{Domain: "d"}, Quarantine: &storage.Quarantine{}}
	bareAfter := storage.Bare(d)
	bareAfter.ModificationTag = d.ModificationTag.Next()
	tooMany, nameless := *d, *d
	tooMany.Instances, nameless.HealthyDefinitionID = 1<<31, "a\x00"
	twoActions := executor.Action{Run: &executor.RunAction{Path: "a", User: "u"}, Serial: &executor.SerialAction{}}
	undecodable, undecodableTask := deployment("p"), taskRecord("t")
	undecodable.Definitions = map[string]lrp.Definition{undecodable.ActiveDefinitionID: {RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: twoActions}}}
	undecodableTask.Action = twoActions
	untaggedLRP, untaggedDeployment, untaggedTask := r[1], deployment("p"), taskRecord("t")
	untaggedLRP.ModificationTag, untaggedDeployment.ModificationTag, untaggedTask.ModificationTag = lrp.ModificationTag{}, lrp.ModificationTag{}, lrp.ModificationTag{}
	labelled := r[2]
	labelled.MetricTags = map[string]string{"app": "web"}
	bigIndex := r[0]
	bigIndex.Index = 1 << 31
	for field, b := range map[string]storage.Batch{
		"actual_lrps[0].key":                   {ActualLRPs: []lrp.Write{{Before: &r[1], After: &moved}}},
		"actual_lrps[0].modification_tag":      {ActualLRPs: []lrp.Write{{Before: &r[1], After: &untagged}}},
		"tasks[0].modification_tag":            {Tasks: []task.Write{{Before: tk, After: tk}}},
		"deployments[0].definitions":           {Deployments: []storage.DeploymentWrite{{After: undecodable}}},
		"tasks[0].action":                      {Tasks: []task.Write{{After: undecodableTask}}},
		"actual_lrps[0]":                       {ActualLRPs: []lrp.Write{{After: &untaggedLRP}}},
		"deployments[0].modification_tag":      {Deployments: []storage.DeploymentWrite{{After: untaggedDeployment}}},
		"tasks[0].modification_tag ":           {Tasks: []task.Write{{After: untaggedTask}}},
		"actual_lrps[1]":                       {ActualLRPs: []lrp.Write{{Before: &r[1]}, {After: &r[1]}}},
		"actual_lrps[0].metric_tags":           {ActualLRPs: []lrp.Write{{After: &labelled}}},
		"actual_lrps[0] ":                      {ActualLRPs: []lrp.Write{{}}},
		"actual_lrps[0].index":                 {ActualLRPs: []lrp.Write{{After: &bigIndex}}},
		"deployments[0].process_guid":          {Deployments: []storage.DeploymentWrite{{Before: d, After: &lrp.Deployment{ProcessGUID: "q"}}}},
		"deployments[1]":                       {Deployments: []storage.DeploymentWrite{{After: d}, {Before: d}}},
		"deployments[0].instances":             {Deployments: []storage.DeploymentWrite{{After: &tooMany}}},
		"deployments[0].healthy_definition_id": {Deployments: []storage.DeploymentWrite{{After: &nameless}}},
		"deployments[0].before":                {Deployments: []storage.DeploymentWrite{{Before: storage.Bare(d), After: func() *lrp.Deployment { n := *d; n.ModificationTag.Index++; return &n }()}}},
		"deployments[0].after":                 {Deployments: []storage.DeploymentWrite{{Before: d, After: bareAfter}}},
		"tasks[0].after":                       {Tasks: []task.Write{{Before: tk, After: func() *task.Task { n := storage.BareTask(tk); n.ModificationTag.Index++; return n }()}}},
		"tasks[0].task_guid":                   {Tasks: []task.Write{{Before: tk, After: other}}},
		"tasks[1]":                             {Tasks: []task.Write{{After: tk}, {After: tk}}},
		"quarantine[0].key":                    {Quarantine: []storage.Quarantine{{Key: storage.EventKey(1)}}},
		"quarantine[0]":                        {Tasks: []task.Write{{After: tk}}, Quarantine: []storage.Quarantine{{Key: storage.TaskKey("t")}}},
		"domains[0].ttl":                       {Domains: []storage.DomainWrite{{Name: "d", TTL: -1}}},
		"domains[1].name":                      {Domains: []storage.DomainWrite{{Name: "d"}, {Name: "d"}}},
		"events[0]":                            {Events: []storage.Event{event}},
		"events[0] ":                           {Events: []storage.Event{{Gap: &storage.Gap{After: 1, First: 3}}}},
		"request_id":                           {RequestID: "\x00"},
	} {
		refusedField(t, "a contradiction", strings.TrimSpace(field), b.Check())
	}
	fine := storage.Batch{
		Deployments: []storage.DeploymentWrite{{Before: storage.Bare(d), After: storage.Bare(d)}, {Before: storage.Bare(e)}},
		Domains:     []storage.DomainWrite{{Name: "d"}, {Name: "D"}},
	}
	if err := fine.Check(); err != nil {
		t.Errorf("a check and a deletion with bare deployments: %v", err)
	}
}

func TestATimeOfAStopThatNoStoreCanHoldIsRefused(t *testing.T) {
	r := records()[2]
	r.Stopping = time.Date(2263, 1, 1, 0, 0, 0, 0, time.UTC)
	refusedField(t, "too late", "actual_lrps[0].stopping", (&storage.Batch{ActualLRPs: []lrp.Write{{After: &r}}}).Check())
}
