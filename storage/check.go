package storage

import (
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// MaxIdentifierBytes is the longest identifier that a Store takes: guids,
// definition ids, cell ids, names of domains and leases, owners and request
// ids.
const MaxIdentifierBytes = lrp.MaxNameBytes

const (
	wantIdentifier = "1 to 255 bytes of UTF-8 without NUL"
	wantText       = "UTF-8"
	wantTag        = "another tag than before, as the record changes"
	wantTime       = "none, or a time in UTC between 1970 and 2262 without a monotonic reading"
)

// Check returns nil if b is well formed, and otherwise an
// *executor.ValidationError. It does not look at the Store's content. Every
// Commit begins with it.
//
// Identifiers are 1 to [MaxIdentifierBytes] bytes of UTF-8 without NUL, or
// empty where the record allows that. Other text is UTF-8. Times are in UTC,
// like those of Step. No version has the zero tag, which means that there is no
// record. Every ActualLRP keeps its invariants. Every deployment is whole, with
// its active definition, and every task has its definition. New actions are valid.
func (b *Batch) Check() error {
	c := checker{}
	var keys map[RecordKey]struct{}
	if n := len(b.ActualLRPs) + len(b.Deployments) + len(b.Tasks) + len(b.Quarantine); n > 1 {
		keys = make(map[RecordKey]struct{}, n)
	}
	once := func(field string, i int, k RecordKey) {
		if keys == nil {
			return
		}
		if _, twice := keys[k]; twice {
			c.At(field, i).Check(false, "", k, "one write of a record in a batch")
		}
		keys[k] = struct{}{}
	}
	for i := range b.ActualLRPs {
		w := &b.ActualLRPs[i]
		if c.pair("actual_lrps", i, w.Before == nil, w.After == nil) {
			c.actualLRP(i, w)
			once("actual_lrps", i, LRPWriteKey(w))
		}
	}
	for i := range b.Deployments {
		w := &b.Deployments[i]
		if c.pair("deployments", i, w.Before == nil, w.After == nil) {
			c.deployment(i, w)
			once("deployments", i, w.Key())
		}
	}
	for i := range b.Tasks {
		w := &b.Tasks[i]
		if c.pair("tasks", i, w.Before == nil, w.After == nil) {
			c.task(i, w)
			once("tasks", i, TaskWriteKey(w))
		}
	}
	for i := range b.Quarantine {
		q := &b.Quarantine[i]
		if q.Key.Kind < DeploymentRecord || q.Key.Kind > TaskRecord {
			c.At("quarantine", i).Check(false, "key", q.Key, "a deployment, an actual LRP or a task")
		}
		once("quarantine", i, q.Key)
	}
	for i := range b.Domains {
		d := &b.Domains[i]
		c.identifier(d.Name, "domains", i, "name")
		if d.TTL < 0 {
			c.At("domains", i).Check(false, "ttl", d.TTL, "at least 0")
		}
		for j := range i {
			if b.Domains[j].Name == d.Name {
				c.At("domains", i).Check(false, "name", d.Name, "one write of a domain in a batch")
			}
		}
	}
	for i := range b.Events {
		e := &b.Events[i]
		set := 0
		for _, is := range [...]bool{e.LRP != nil, e.Task != nil, e.Domain != nil, e.Quarantine != nil, e.Session != nil} {
			if is {
				set++
			}
		}
		if set != 1 || e.Gap != nil {
			c.At("events", i).Check(false, "", set, "one of LRP, Task, Domain, Quarantine and Session, and no Gap, which only a Store leaves")
		}
	}
	if b.RequestID != "" {
		c.identifier(b.RequestID, "", 0, "request_id")
	}
	return c.Err()
}

// CheckLease returns nil if l can be acquired or renewed for ttl, and otherwise
// an *executor.ValidationError. Every Acquire and Renew begins with it.
func CheckLease(l *Lease, ttl time.Duration) error {
	c := checker{}
	c.identifier(l.Kind, "", 0, "kind")
	c.identifier(l.Name, "", 0, "name")
	c.identifier(l.Owner, "", 0, "owner")
	c.Check(len(l.Value) <= MaxLeaseValueBytes, "value", len(l.Value), "at most 32768 bytes")
	if ttl < time.Millisecond {
		c.Check(false, "ttl", ttl, "at least 1ms")
	}
	return c.Err()
}

type checker struct{ executor.Validator }

// in is the validator of one element of a list, or of the batch itself.
func (c *checker) in(list string, i int) *executor.Validator {
	if list == "" {
		return &c.Validator
	}
	return c.At(list, i)
}

func (c *checker) pair(list string, i int, noBefore, noAfter bool) bool {
	if noBefore && noAfter {
		c.At(list, i).Check(false, "", "", "a record before or after")
		return false
	}
	return true
}

func (c *checker) identifier(s, list string, i int, field string) {
	if len(s) == 0 || len(s) > MaxIdentifierBytes || strings.IndexByte(s, 0) >= 0 || !utf8.ValidString(s) {
		c.in(list, i).Check(false, field, s, wantIdentifier)
	}
}

func (c *checker) optionalIdentifier(s, list string, i int, field string) {
	if s != "" {
		c.identifier(s, list, i, field)
	}
}

func (c *checker) text(s, list string, i int, field string) {
	if !utf8.ValidString(s) {
		c.in(list, i).Check(false, field, s, wantText)
	}
}

func (c *checker) time(t time.Time, list string, i int, field string) {
	if t != (time.Time{}) && (t != time.Unix(0, t.UnixNano()).UTC() || t.UnixNano() <= 0) {
		c.in(list, i).Check(false, field, t, wantTime)
	}
}

func (c *checker) same(same bool, list string, i int, field string, value any) {
	if !same {
		c.in(list, i).Check(false, field, value, "the same before and after")
	}
}

// tagged refuses the zero tag, which means that there is no record.
func (c *checker) tagged(tag executor.ModificationTag, list string, i int) {
	if tag.IsZero() {
		c.in(list, i).Check(false, "modification_tag", tag, "a tag that is not zero")
	}
}

// actions refuses actions that nobody could decode again, for example one of
// two kinds.
func (c *checker) actions(info *executor.RunInfo, list string, i int, field string) {
	var v executor.Validator
	info.Action.Validate(&v)
	for _, a := range []*executor.Action{info.Setup, info.Monitor} {
		if a != nil {
			a.Validate(&v)
		}
	}
	for j := range info.Sidecars {
		info.Sidecars[j].Action.Validate(&v)
	}
	if err := v.Err(); err != nil {
		c.in(list, i).Check(false, field, err, "actions within their limits")
	}
}

func (c *checker) actualLRP(i int, w *lrp.Write) {
	const list = "actual_lrps"
	if w.Before != nil && w.After != nil {
		if before, after := ActualLRPKey(w.Before), ActualLRPKey(w.After); before != after {
			c.same(false, list, i, "key", after)
		}
	}
	if w.Before != nil {
		c.tagged(w.Before.ModificationTag, list, i)
	}
	r := w.After
	if r == nil {
		return
	}
	if IsCheck(w) && w.Before != r && !reflect.DeepEqual(w.Before, r) {
		c.in(list, i).Check(false, "modification_tag", r.ModificationTag, wantTag)
	}
	if err := r.Validate(); err != nil {
		c.in(list, i).Check(false, "", err, "a record that keeps its invariants")
	}
	c.identifier(r.ProcessGUID, list, i, "process_guid")
	c.identifier(r.DefinitionID, list, i, "definition_id")
	c.identifier(r.Domain, list, i, "domain")
	c.optionalIdentifier(r.InstanceGUID, list, i, "instance_guid")
	c.optionalIdentifier(r.CellID, list, i, "cell_id")
	c.optionalIdentifier(r.Zone, list, i, "zone")
	if len(r.InternalRoutes)+len(r.MetricTags) > 0 {
		c.in(list, i).Check(false, "metric_tags", "labels", "a record without labels, which a store does not keep")
	}
	c.text(r.CrashReason, list, i, "crash_reason")
	c.text(r.PlacementError.Detail, list, i, "placement_error")
	c.text(r.NetInfo.Address, list, i, "address")
	c.text(r.NetInfo.InstanceAddress, list, i, "instance_address")
	c.time(r.Since, list, i, "since")
	c.time(r.RunningSince, list, i, "running_since")
	c.time(r.ExpiresAt, list, i, "expires_at")
	c.time(r.Stopping, list, i, "stopping")
	if r.Index > maxIndex || r.CrashCount > maxIndex {
		c.in(list, i).Check(false, "index", r.Index, "at most 2147483647, as the crash count")
	}
}

// maxIndex is the largest 32-bit integer, which every database has.
const maxIndex = 1<<31 - 1

func (c *checker) deployment(i int, w *DeploymentWrite) {
	const list = "deployments"
	if w.Before != nil && w.After != nil {
		c.same(w.Before.ProcessGUID == w.After.ProcessGUID, list, i, "process_guid", w.After.ProcessGUID)
	}
	if w.Before != nil {
		c.tagged(w.Before.ModificationTag, list, i)
	}
	d := w.After
	if d == nil || w.IsCheck() {
		return
	}
	c.identifier(d.ProcessGUID, list, i, "process_guid")
	c.identifier(d.Domain, list, i, "domain")
	c.optionalIdentifier(d.HealthyDefinitionID, list, i, "healthy_definition_id")
	if d.Instances < 0 || d.Instances > maxIndex {
		c.in(list, i).Check(false, "instances", d.Instances, "0 to 2147483647")
	}
	for _, id := range d.DefinitionIDs() {
		c.identifier(id, list, i, "definitions")
		if w.Before != nil {
			if _, known := w.Before.Definitions[id]; known {
				continue
			}
		}
		definition := d.Definitions[id]
		c.actions(&definition.RunInfo, list, i, "definitions")
	}
	c.tagged(d.ModificationTag, list, i)
	c.whole(w.Before, i, "before")
	c.whole(d, i, "after")
	c.text(d.Annotation, list, i, "annotation")
}

// whole refuses a bare deployment, whose definitions are zero.
func (c *checker) whole(d *lrp.Deployment, i int, field string) {
	if d == nil {
		return
	}
	_, whole := d.Definitions[d.ActiveDefinitionID]
	for _, definition := range d.Definitions {
		whole = whole && !reflect.ValueOf(&definition).Elem().IsZero()
	}
	if !whole {
		c.in("deployments", i).Check(false, field, d.ProcessGUID, "a deployment with all its definitions")
	}
}

func (c *checker) task(i int, w *task.Write) {
	const list = "tasks"
	if w.Before != nil && w.After != nil {
		c.same(w.Before.GUID == w.After.GUID, list, i, "task_guid", w.After.GUID)
	}
	if w.Before != nil {
		c.tagged(w.Before.ModificationTag, list, i)
	}
	t := w.After
	if t == nil {
		return
	}
	if w.Before != nil && w.Before.ModificationTag == t.ModificationTag {
		c.in(list, i).Check(false, "modification_tag", t.ModificationTag, wantTag)
	}
	c.tagged(t.ModificationTag, list, i)
	if t.RootFS == "" && t.Action == (executor.Action{}) {
		c.in(list, i).Check(false, "after", "bare", "a task with its definition")
	}
	if w.Before == nil {
		c.actions(&t.RunInfo, list, i, "action")
	}
	c.identifier(t.GUID, list, i, "task_guid")
	c.identifier(t.Domain, list, i, "domain")
	c.optionalIdentifier(t.CellID, list, i, "cell_id")
	c.optionalIdentifier(t.InstanceGUID, list, i, "instance_guid")
	c.text(t.FailureReason, list, i, "failure_reason")
	c.text(t.RejectionReason, list, i, "rejection_reason")
	c.text(t.Result, list, i, "result")
	c.text(t.Annotation, list, i, "annotation")
	c.time(t.CreatedAt, list, i, "created_at")
	c.time(t.UpdatedAt, list, i, "updated_at")
	c.time(t.FirstCompletedAt, list, i, "first_completed_at")
}
