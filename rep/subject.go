package rep

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// A subject is what one container is for: an instance of an LRP, or one
// attempt of a task.
type subject struct {
	// guid is the instance's and the container's.
	guid string
	// key is set for an instance, task and attempt for a task.
	key     lrp.Key
	task    string
	attempt task.Attempt
	// domain is the one of the work, for both.
	domain string
}

func (s subject) isTask() bool { return s.task != "" }

func (s subject) String() string { return s.name() + " in container " + s.guid }

// name is the work's, such as "web/0" or "task job".
func (s subject) name() string {
	if s.isTask() {
		return "task " + s.task
	}
	return fmt.Sprintf("%s/%d", s.key.ProcessGUID, s.key.Index)
}

// subjectOf reads from a container's tags what it is for. It returns false for a
// container that no rep has made.
func subjectOf(c executor.Container) (subject, bool) {
	s := subject{guid: c.GUID, domain: c.Tags[executor.TagDomain]}
	switch c.Tags[executor.TagLifecycle] {
	case executor.LifecycleLRP:
		index, err := strconv.Atoi(c.Tags[executor.TagProcessIndex])
		s.key = lrp.Key{
			ProcessGUID: c.Tags[executor.TagProcessGUID], DefinitionID: c.Tags[executor.TagDefinitionID],
			Index: index, Domain: s.domain,
		}
		return s, err == nil && s.key.ProcessGUID != ""
	case executor.LifecycleTask:
		s.task = c.Tags[executor.TagTaskGUID]
		_, err := fmt.Sscanf(c.Tags[executor.TagTaskAttempt], attemptFormat, &s.attempt.Epoch, &s.attempt.Rejections)
		return s, err == nil && s.task != ""
	}
	return s, false
}

const attemptFormat = "%d.%d"

// NewReservation asks for the container of an item of work. Its tags say what the
// container is for.
func NewReservation(guid string, item *auction.Item) executor.Reservation {
	tags := map[string]string{executor.TagDomain: item.Domain, executor.TagInstanceGUID: guid}
	if item.Kind == auction.Task {
		tags[executor.TagLifecycle] = executor.LifecycleTask
		tags[executor.TagTaskGUID] = item.GUID
		tags[executor.TagTaskAttempt] = fmt.Sprintf(attemptFormat, item.Attempt.Epoch, item.Attempt.Rejections)
	} else {
		tags[executor.TagLifecycle] = executor.LifecycleLRP
		tags[executor.TagProcessGUID] = item.GUID
		tags[executor.TagDefinitionID] = item.DefinitionID
		tags[executor.TagProcessIndex] = strconv.Itoa(item.Index)
	}
	setList(tags, executor.TagPlacementTags, item.PlacementTags)
	setList(tags, executor.TagVolumeDrivers, item.VolumeDrivers)
	return executor.Reservation{GUID: guid, Resources: item.Resources, Tags: tags}
}

func setList(tags map[string]string, tag string, list []string) {
	if text, err := json.Marshal(list); err == nil && len(list) > 0 { // text always encodes
		tags[tag] = string(text)
	}
}

// wants reports whether a container for s is what the item asks for.
func (s subject) wants(item *auction.Item) bool {
	if item.Kind == auction.Task {
		return s.task == item.GUID && s.attempt == item.Attempt
	}
	return !s.isTask() && s.key == item.Key.LRP()
}

// netInfo is where a container is reached, as a record has it.
func netInfo(c executor.Container, preferred lrp.PreferredAddress) lrp.NetInfo {
	n := lrp.NetInfo{Address: c.ExternalIP, InstanceAddress: c.InternalIP, PreferredAddress: preferred}
	if preferred == lrp.PreferInstance && c.InternalIP == "" {
		n.PreferredAddress = lrp.PreferHost
	}
	for _, p := range c.Ports {
		n.Ports = append(n.Ports, lrp.PortMapping(p))
	}
	return n
}

// outdated reports whether the RUNNING record of the container's instance is among
// the records and does not match the container.
func (r *Rep) outdated(records []lrp.ActualLRP, me lrp.InstanceKey, c executor.Container) bool {
	for i := range records {
		record := &records[i]
		if record.InstanceKey != me || record.Presence != lrp.Ordinary || record.State != lrp.Running {
			continue
		}
		now := netInfo(c, r.o.PreferredAddress)
		return record.Routable != c.Routable || record.Zone != r.o.Zone || !record.NetInfo.Equal(&now)
	}
	return false
}

// completion reports the end of a task's container to the BBS.
func completion(s subject, cellID string, r executor.RunResult) task.Complete {
	c := task.Complete{CellID: cellID, InstanceGUID: s.guid, Attempt: s.attempt}
	switch {
	case r.Failed:
		c.Failed, c.FailureReason = true, r.FailureReason
	case r.Stopped:
		c.Failed, c.FailureReason = true, "the container was stopped"
	}
	return c
}

// crashReason is the reported reason of a container that ended unasked.
func crashReason(r executor.RunResult) string {
	if r.Failed {
		return r.FailureReason
	}
	return "ended without being told to"
}
