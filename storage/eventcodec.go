package storage

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// This file holds the encoding of events. Events about ActualLRPs are binary,
// like the records; all others are JSON.

// eventJSON is the JSON form of an event that is not binary.
type eventJSON struct {
	LRP        *lrp.Event     `json:"lrp,omitempty"`
	Task       *taskEventJSON `json:"task,omitempty"`
	Domain     *DomainEvent   `json:"domain,omitempty"`
	Quarantine *Quarantine    `json:"quarantine,omitempty"`
	Session    *SessionEvent  `json:"session,omitempty"`
	Gap        *Gap           `json:"gap,omitempty"`

	// Large parts that hardly ever change are left out of the record before if the
	// record after has the same: a task's definition, a deployment's definitions,
	// and its settings except for the number of instances.
	SameDefinitions bool `json:"same_definitions,omitempty"`
	SameSettings    bool `json:"same_settings,omitempty"`
}

type taskEventJSON struct {
	Kind   string     `json:"kind"`
	Before *task.Task `json:"before,omitempty"`
	After  *task.Task `json:"after,omitempty"`
	Cause  task.Cause `json:"cause"`
}

// leaveOut removes from the records before what the records after have too.
func (w *eventJSON) leaveOut() {
	if l := w.LRP; l != nil && l.DeploymentBefore != nil && l.DeploymentAfter != nil {
		before, after := *l.DeploymentBefore, l.DeploymentAfter
		if reflect.DeepEqual(before.Definitions, after.Definitions) {
			w.SameDefinitions, before.Definitions = true, nil
		}
		settings := before.Settings
		settings.Instances = after.Instances
		if reflect.DeepEqual(settings, after.Settings) {
			w.SameSettings, before.Settings = true, lrp.Settings{Instances: before.Instances}
		}
		event := *l
		event.DeploymentBefore = &before
		w.LRP = &event
	}
	if t := w.Task; t != nil && t.Before != nil && t.After != nil && reflect.DeepEqual(t.Before.Definition, t.After.Definition) {
		before := *t.Before
		w.SameDefinitions, before.Definition, t.Before = true, task.Definition{}, &before
	}
}

// putBack undoes leaveOut.
func (w *eventJSON) putBack() error {
	switch l, t := w.LRP, w.Task; {
	case !w.SameDefinitions && !w.SameSettings:
	case l != nil && l.DeploymentBefore != nil && l.DeploymentAfter != nil:
		before, after := l.DeploymentBefore, l.DeploymentAfter
		if w.SameDefinitions {
			before.Definitions = after.Definitions
		}
		if w.SameSettings {
			instances := before.Instances
			before.Settings = after.Settings
			before.Instances = instances
		}
	case t != nil && t.Before != nil && t.After != nil && w.SameDefinitions:
		t.Before.Definition = t.After.Definition
	default:
		return errors.New("what is the same after is not there")
	}
	return nil
}

// EncodeEvent returns the versioned encoding of e without Sequence and At,
// which a database has in columns.
func EncodeEvent(e *Event) ([]byte, error) {
	if l := e.LRP; l != nil && l.DeploymentBefore == nil && l.DeploymentAfter == nil {
		return appendInstanceEvent(make([]byte, 0, 512), l), nil
	}
	w := eventJSON{LRP: e.LRP, Domain: e.Domain, Quarantine: e.Quarantine, Session: e.Session, Gap: e.Gap}
	if t := e.Task; t != nil {
		w.Task = &taskEventJSON{Kind: taskKinds[t.Kind], Before: t.Before, After: t.After, Cause: t.Cause}
	}
	w.leaveOut()
	return Encode(w)
}

// DecodeEvent reads an encoding of [EncodeEvent].
func DecodeEvent(data []byte) (Event, error) {
	if len(data) > 0 && slices.Contains(instanceVersions, data[0]) {
		return decodeInstanceEvent(data)
	}
	var w eventJSON
	if err := Decode(data, &w); err != nil {
		return Event{}, err
	}
	if err := w.putBack(); err != nil {
		return Event{}, err
	}
	if l := w.LRP; l != nil {
		if _, err := l.Kind.MarshalText(); err != nil {
			return Event{}, err
		}
		if l.DeploymentBefore == nil && l.DeploymentAfter == nil {
			return Event{}, errors.New("an event about no deployment")
		}
	}
	if s := w.Session; s != nil {
		var v executor.Validator
		if s.Validate(&v); v.Err() != nil {
			return Event{}, v.Err()
		}
	}
	e := Event{LRP: w.LRP, Domain: w.Domain, Quarantine: w.Quarantine, Session: w.Session, Gap: w.Gap}
	if t := w.Task; t != nil {
		for _, record := range [...]*task.Task{t.Before, t.After} {
			if record != nil {
				if err := record.Validate(); err != nil {
					return Event{}, err
				}
			}
		}
		e.Task = &task.Event{Before: t.Before, After: t.After, Cause: t.Cause}
		for kind, name := range taskKinds {
			if name == t.Kind {
				e.Task.Kind = kind
			}
		}
	}
	if e.Subject().Kind == "" {
		return Event{}, errors.New("an event of no known kind")
	}
	return e, nil
}

const (
	hasBefore = 1 << iota
	hasAfter
)

// instanceVersions are those of events about ActualLRPs.
var instanceVersions = []byte{versionBinary, versionPreferred, versionStopping}

func appendInstanceEvent(dst []byte, e *lrp.Event) []byte {
	has := byte(0)
	if e.Before != nil {
		has |= hasBefore
	}
	if e.After != nil {
		has |= hasAfter
	}
	version := versionOf(e.Before, e.After)
	dst = append(dst, version, byte(e.Kind), has)
	dst = appendText(dst, e.Cause.Command)
	dst = appendText(dst, e.Cause.Detail)
	for _, r := range [...]*lrp.ActualLRP{e.Before, e.After} {
		if r != nil {
			dst = appendFields(appendKey(dst, r), r, version)
		}
	}
	return dst
}

func decodeInstanceEvent(data []byte) (Event, error) {
	in := decoding{rest: data, names: new(Decoder)}
	if err := in.version(instanceVersions...); err != nil {
		return Event{}, err
	}
	e := new(lrp.Event)
	e.Kind = lrp.EventKind(in.byte())
	if _, err := e.Kind.MarshalText(); err != nil {
		in.fail(err)
	}
	has := in.byte()
	if has == 0 || has > hasBefore|hasAfter {
		in.fail(fmt.Errorf("the event's records are %d, want 1 to 3", has))
	}
	e.Cause.Command = in.text()
	e.Cause.Detail = in.text()
	if has&hasBefore != 0 {
		e.Before = new(lrp.ActualLRP)
		in.key(e.Before)
		in.fields(e.Before)
	}
	if has&hasAfter != 0 {
		e.After = new(lrp.ActualLRP)
		in.key(e.After)
		in.fields(e.After)
	}
	if err := in.end(); err != nil {
		return Event{}, err
	}
	return Event{LRP: e}, nil
}
