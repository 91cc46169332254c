package intent

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// web is an LRP that runs a program, with two instances.
func web(program string) lrp.DeploymentDefinition {
	var d lrp.DeploymentDefinition
	d.ProcessGUID, d.Domain, d.Instances = "web", "apps", 2
	d.Definition.RootFS = "host:"
	d.Definition.Action = executor.Action{Run: &executor.RunAction{Path: program, User: "nobody"}}
	return d
}

// made is what is there once the intents have been carried out.
func made(t *testing.T, wants ...lrp.DeploymentDefinition) *lrp.Deployment {
	t.Helper()
	var have *lrp.Deployment
	for _, want := range wants {
		i, err := Process(&want, have)
		if err != nil {
			t.Fatal(err)
		}
		have = i.after
	}
	return have
}

func TestAnIntentIsWhatTheFileAsksForAndIsNotThere(t *testing.T) {
	scaled := func(d lrp.DeploymentDefinition, n, inFlight int) lrp.DeploymentDefinition {
		d.Instances = n
		if inFlight > 0 {
			d.Rollout = &lrp.RolloutPolicy{MaxInFlight: inFlight}
		}
		return d
	}
	elsewhere := web("/a")
	elsewhere.Domain = "other"
	named, other := web("/a"), web("/b")
	named.DefinitionID, other.DefinitionID = "v1", "v1"
	for _, tt := range []struct {
		name string
		have *lrp.Deployment
		want lrp.DeploymentDefinition
		text string
		room []int // the indices that need room at once
	}{
		{"a new process", nil, web("/a"), "web: create, 2 instances", []int{0, 1}},
		{"the same", made(t, web("/a")), web("/a"), "web: as it should be", nil},
		{"more instances", made(t, web("/a")), scaled(web("/a"), 4, 0), "web: update", []int{2, 3}},
		{"fewer instances", made(t, web("/a")), scaled(web("/a"), 1, 0), "web: update", nil},
		{"another definition", made(t, web("/a")), web("/b"), "web: roll out definition ID, 2 instances", []int{0}},
		{"another definition, and more instances", made(t, web("/a")), scaled(web("/b"), 3, 0), "web: roll out definition ID, 3 instances", []int{0, 2}},
		{"several at a time", made(t, web("/a")), scaled(web("/b"), 4, 3), "web: roll out definition ID, 4 instances", []int{0, 1, 2, 3}},
		{"a definition that is there", made(t, web("/a"), web("/b")), web("/a"), "web: roll out definition web, 2 instances", []int{0}},
		{"another domain", made(t, web("/a")), elsewhere, "web: its domain is apps and cannot become other", nil},
		{"another definition of the same id", made(t, named), other, "web: definition v1 is another one already", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			i, err := Process(&tt.want, tt.have)
			if err != nil {
				if !errors.Is(err, lrp.ErrRefused) || !strings.Contains(err.Error(), strings.TrimPrefix(tt.text, "web: ")) {
					t.Errorf("it is refused: %v", err)
				}
				return
			}
			if got, want := i.String(), strings.ReplaceAll(tt.text, "ID", i.DefinitionID); got != want {
				t.Errorf("it is %q, want %q", got, want)
			}
			again, err := Process(&tt.want, i.after)
			if err != nil || again.Do != Keep || again.DefinitionID != i.DefinitionID {
				t.Errorf("once it is carried out, the next is %v, %v", &again, err)
			}
			items, err := i.Items(time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			var room []int
			for _, item := range items {
				room = append(room, item.Key.Index)
			}
			if !slices.Equal(room, tt.room) {
				t.Errorf("room is needed for %v, want %v", room, tt.room)
			}
		})
	}
}

func TestATaskThatExistsIsLeftAlone(t *testing.T) {
	want := task.Desire{GUID: "sum", Domain: "apps"}
	want.Definition.ResultFile = "/result"
	running := &task.Task{GUID: "sum", Domain: "apps", Definition: want.Definition, State: task.Running}
	ended := &task.Task{GUID: "sum", Domain: "apps", State: task.Completed}
	for _, tt := range []struct {
		have  *task.Task
		text  string
		items int
		final bool
	}{
		{nil, "task sum: run", 1, false},
		{running, "task sum: left alone, as it is", 0, false},
		{ended, "task sum: left alone, as it is; a task cannot change, so the file's needs another task_guid", 0, true},
	} {
		i, err := Task(&want, tt.have, "as it is")
		items, itemErr := i.Items(time.Time{})
		if err := errors.Join(err, itemErr); err != nil {
			t.Fatal(err)
		}
		if got := i.String(); got != tt.text || len(items) != tt.items || i.Final() != tt.final {
			t.Errorf("it is %q, final %v, with room for %d; want %+v", got, i.Final(), len(items), tt)
		}
	}
}

func TestWhatNoFileHasIsPruned(t *testing.T) {
	list := make([]lrp.SchedulingInfo, 3)
	list[0].ProcessGUID, list[1].ProcessGUID, list[2].ProcessGUID = "a", "b", "c"
	got := Prune(list, map[string]bool{"b": true})
	if len(got) != 2 || fmt.Sprint(&got[0], &got[1]) != "a: delete, 0 instances; it is not in the files c: delete, 0 instances; it is not in the files" || !got[0].Final() {
		t.Errorf("it is %v", got)
	}
}
