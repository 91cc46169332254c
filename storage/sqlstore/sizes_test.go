package sqlstore

import (
	"fmt"
	"strings"
	"testing"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

func TestAProcessWithVeryManyInstancesIsListedWhole(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		const instances = maxShared + 1000
		var b storage.Batch
		for i := range instances {
			b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: unclaimed("p", i)})
		}
		b.ActualLRPs = append(b.ActualLRPs, lrp.Write{After: unclaimed("q", 0)})
		if _, err := s.Commit(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		next := 0
		for r, err := range s.ActualLRPs(t.Context(), storage.ActualLRPFilter{ProcessGUIDs: []string{"p"}}) {
			if err != nil || r.Index != next {
				t.Fatalf("index %d, error %v, want %d", r.Index, err, next)
			}
			next++
		}
		if next != instances {
			t.Errorf("%d instances, want %d", next, instances)
		}
		if n := count(t, s, "q"); n != 1 {
			t.Errorf("%d instances of the other process", n)
		}
		// A filter that is too long for a statement is applied here.
		guids := []string{"q"}
		for i := range maxPushed {
			guids = append(guids, fmt.Sprint("none-", i))
		}
		n := 0
		for _, err := range s.ActualLRPs(t.Context(), storage.ActualLRPFilter{ProcessGUIDs: guids}) {
			if n++; err != nil {
				t.Fatal(err)
			}
		}
		if n != 1 {
			t.Errorf("%d instances of %d processes, want 1", n, len(guids))
		}
	})
}

// Texts are longer than what one packet of MySQL holds.
func TestABatchOfManyMegabytesIsCommitted(t *testing.T) {
	eachDatabase(t, func(t *testing.T, dsn string) {
		s := mustOpen(t, dsn, Options{})
		const tasks = 100
		action := desired("p", 1).Definitions["p"].Action
		for round := range 2 { // the second time, tags are compared in front
			var b storage.Batch
			for i := range tasks {
				w := &task.Task{
					GUID: fmt.Sprintf("t%03d", i), Domain: "apps", State: task.Completed, CreatedAt: noon, UpdatedAt: noon, FirstCompletedAt: noon,
					Result:          strings.Repeat("'x\\\"", task.MaxResultBytes/4),
					ModificationTag: lrp.ModificationTag{Epoch: 1, Index: int64(round)},
				}
				w.RootFS, w.Action = "preloaded:linux", action
				write := task.Write{After: w}
				if round > 0 {
					before := *w
					before.ModificationTag.Index--
					write.Before = &before
				}
				b.Tasks = append(b.Tasks, write)
			}
			b.Events = []storage.Event{{Task: &task.Event{Kind: task.Created, After: b.Tasks[0].After}}}
			if _, err := s.Commit(t.Context(), b); err != nil {
				t.Fatal(err)
			}
		}
		n := 0
		for w, err := range s.Tasks(t.Context(), storage.TaskFilter{}) {
			if err != nil || len(w.Result) != task.MaxResultBytes || w.ModificationTag.Index != 1 {
				t.Fatalf("task %d: %v", n, err)
			}
			n++
		}
		if n != tasks {
			t.Errorf("%d tasks, want %d", n, tasks)
		}
		checkLog(t, s, 2)
	})
}
