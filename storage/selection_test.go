package storage_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

func selector(t *testing.T, text string) executor.Selector {
	t.Helper()
	s, err := executor.ParseSelector(text)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func labelled(guid string, labels map[string]string) *lrp.Deployment {
	return &lrp.Deployment{ProcessGUID: guid, Settings: lrp.Settings{Labels: labels}}
}

func TestASelectionChoosesEventsByTheLabelsOfTheirMoment(t *testing.T) {
	blog, shop := map[string]string{"team": "blog"}, map[string]string{"team": "shop"}
	instance := func(guid string) storage.Event {
		return storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceChanged, After: &lrp.ActualLRP{Key: lrp.Key{ProcessGUID: guid}}}}
	}
	deployment := func(before, after *lrp.Deployment) storage.Event {
		return storage.Event{LRP: &lrp.Event{Kind: lrp.DeploymentChanged, DeploymentBefore: before, DeploymentAfter: after}}
	}
	ofTask := func(before, after map[string]string) storage.Event {
		return storage.Event{Task: &task.Event{
			Before: &task.Task{Definition: task.Definition{Labels: before}}, After: &task.Task{Definition: task.Definition{Labels: after}},
		}}
	}
	removed := ofTask(blog, nil)
	removed.Task.After = nil
	selection := storage.NewSelection(selector(t, "team=blog"), []string{"web", "gone"})
	for _, step := range []struct {
		what  string
		event storage.Event
		want  bool
	}{
		{"an instance of a process that is chosen now", instance("web"), true},
		{"one of a process that is not", instance("other"), false},
		{"a process without the label begins", deployment(nil, labelled("new", nil)), false},
		{"its instance", instance("new"), false},
		{"it gets the label", deployment(labelled("new", nil), labelled("new", blog)), true},
		{"its instance then", instance("new"), true},
		{"it gets another value", deployment(labelled("new", blog), labelled("new", shop)), true},
		{"its instance after that", instance("new"), false},
		{"it ends", deployment(labelled("new", shop), nil), false},
		{"a process that is chosen ends", deployment(labelled("web", blog), nil), true},
		{"and again, as consumers of desired LRPs see it", deployment(labelled("web", blog), nil), true},
		{"the end of its instance", instance("web"), true},
		{"it comes again without the label", deployment(nil, labelled("web", shop)), false},
		{"its instance then", instance("web"), false},
		{"a task with the label", ofTask(blog, blog), true},
		{"one without", ofTask(nil, shop), false},
		{"the end of a task", removed, true},
		{"a record that was put aside", storage.Event{Quarantine: &storage.Quarantine{Key: storage.DeploymentKey("gone")}}, true},
		{"one of another process", storage.Event{Quarantine: &storage.Quarantine{Key: storage.DeploymentKey("other")}}, false},
		{"a domain", storage.Event{Domain: &storage.DomainEvent{Domain: "d"}}, false},
		{"a gap", storage.Event{Gap: &storage.Gap{}}, false},
	} {
		if got := selection.Wants(&step.event); got != step.want {
			t.Errorf("%s is chosen: %v, want %v", step.what, got, step.want)
		}
	}
	all := storage.NewSelection(executor.Selector{}, nil)
	if e := instance("any"); !all.Wants(&e) {
		t.Error("the zero selector does not choose everything")
	}
}

// However many processes come and go, a selection remembers the last ones that
// have ended, and all that are there.
func TestASelectionForgetsWhatEndedLongAgo(t *testing.T) {
	blog := map[string]string{"team": "blog"}
	s := storage.NewSelection(selector(t, "team=blog"), []string{"web"})
	tell := func(before, after *lrp.Deployment) {
		s.Wants(&storage.Event{LRP: &lrp.Event{DeploymentBefore: before, DeploymentAfter: after}})
	}
	wants := func(guid string) bool {
		return s.Wants(&storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceRemoved, Before: &lrp.ActualLRP{Key: lrp.Key{ProcessGUID: guid}}}})
	}
	tell(labelled("back", blog), nil)
	tell(nil, labelled("back", blog))
	const n = 25_000
	for i := range n {
		d := labelled(fmt.Sprint("p", i), blog)
		tell(nil, d)
		tell(d, nil)
	}
	for guid, want := range map[string]bool{"web": true, "back": true, "p0": false, fmt.Sprint("p", n-1): true, fmt.Sprint("p", n-10_000): true} {
		if got := wants(guid); got != want {
			t.Errorf("%s is chosen: %v, want %v", guid, got, want)
		}
	}
}

// A reader that goes on in the middle of the log sees what it would have seen
// without the break, even if labels have changed since.
func TestASelectionAfterAPositionKnowsTheLabelsOfThatPosition(t *testing.T) {
	blog, shop := map[string]string{"team": "blog"}, map[string]string{"team": "shop"}
	log := []storage.Event{
		{LRP: &lrp.Event{Kind: lrp.DeploymentRemoved, DeploymentBefore: labelled("ended", blog)}},
		{LRP: &lrp.Event{Kind: lrp.DeploymentRemoved, DeploymentBefore: labelled("again", blog)}},
		{LRP: &lrp.Event{Kind: lrp.DeploymentCreated, DeploymentAfter: labelled("again", shop)}},
		{LRP: &lrp.Event{Kind: lrp.DeploymentChanged, DeploymentBefore: labelled("joined", shop), DeploymentAfter: labelled("joined", blog)}},
		// The reader goes on here, after event 4.
		{LRP: &lrp.Event{Kind: lrp.DeploymentChanged, DeploymentBefore: labelled("left", blog), DeploymentAfter: labelled("left", shop)}},
		{LRP: &lrp.Event{Kind: lrp.DeploymentChanged, DeploymentBefore: labelled("left", shop), DeploymentAfter: labelled("left", nil)}},
		{LRP: &lrp.Event{Kind: lrp.DeploymentChanged, DeploymentBefore: labelled("late", shop), DeploymentAfter: labelled("late", blog)}},
		{LRP: &lrp.Event{Kind: lrp.DeploymentCreated, DeploymentAfter: labelled("new", blog)}},
		{LRP: &lrp.Event{Kind: lrp.DeploymentRemoved, DeploymentBefore: labelled("gone", blog)}},
		{Domain: &storage.DomainEvent{Domain: "d"}},
	}
	const position = 4
	for i := range log {
		log[i].Sequence = storage.Cursor(i + 1)
	}
	events := func(yield func(storage.Event, error) bool) {
		for i, e := range log {
			if i == 2 && !yield(storage.Event{}, &storage.CorruptError{}) || !yield(e, nil) {
				return
			}
		}
	}
	s, err := storage.SelectionAfter(selector(t, "team=blog"), []string{"same", "joined", "late", "new"}, position, events)
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want map[string]bool) {
		t.Helper()
		for guid, want := range want {
			e := storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceRemoved, Before: &lrp.ActualLRP{Key: lrp.Key{ProcessGUID: guid}}}}
			if got := s.Wants(&e); got != want {
				t.Errorf("%s, an instance of %s is chosen: %v, want %v", when, guid, got, want)
			}
		}
	}
	check("after the position", map[string]bool{
		"ended": true, "again": false, "joined": true, "left": true, "late": false, "new": false, "gone": true, "same": true, "other": false,
	})
	for i := range log[position:] {
		s.Wants(&log[position+i])
	}
	check("at the end", map[string]bool{
		"ended": true, "again": false, "joined": true, "left": false, "late": true, "new": true, "gone": true, "same": true, "other": false,
	})
	broken := errors.New("the store is away")
	if _, err := storage.SelectionAfter(selector(t, "team=blog"), nil, 0, func(yield func(storage.Event, error) bool) { yield(storage.Event{}, broken) }); !errors.Is(err, broken) {
		t.Errorf("the error is %v", err)
	}
}
