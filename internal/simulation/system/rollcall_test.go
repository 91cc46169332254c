package system_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/task"
)

// A cell that does not report the end of containers leaves records that only the
// roll call finds.
func TestWhatIsRecordedOnACellWithoutAContainerIsGivenUp(t *testing.T) {
	tests := []struct {
		name   string
		happen func(s *system)
		// left is what is wrong until the next roll call, and want what is right
		// afterwards.
		left, want []string
	}{
		{"an instance that has crashed", func(s *system) {
			s.cells[0].Crash("web", 0, "exit status 1")
		}, []string{"web/0 RUNNING ORDINARY cell-1"}, []string{"web/0 RUNNING ORDINARY cell-1"}},
		{"an instance that a rollout has replaced", func(s *system) {
			id, next := "v2", definition()
			next.Resources.MemoryMB = 128
			s.must(s.BBS.UpdateDeployment(s.ctx, "web", lrp.Update{DefinitionID: &id, Definition: &next}))
		}, []string{"web/0 RUNNING ORDINARY cell-1", "web/0 RUNNING ORDINARY cell-1"}, []string{"web/0 RUNNING ORDINARY cell-1"}},
		{"an instance that is not desired any more", func(s *system) {
			s.must(s.BBS.DeleteDeployment(s.ctx, "web"))
		}, []string{"web/0 RUNNING ORDINARY cell-1"}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newSystem(t, 1, nil)
			s.must(s.BBS.UpsertDomain(s.ctx, "apps", 0))
			s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
			s.pass(3 * time.Second)
			s.cells[0].Silent = true
			before := s.instances()
			tt.happen(s)
			s.pass(time.Minute)
			s.wantRecords(tt.left...)
			s.pass(5 * time.Minute)
			s.wantRecords(tt.want...)
			if now := s.instances(); len(now) != s.containers() || slices.Contains(now, before[0]) {
				t.Errorf("%v run with %d containers; before that %v did", now, s.containers(), before)
			}
		})
	}
	t.Run("a task that has ended", func(t *testing.T) {
		s := newSystem(t, 1, nil)
		s.cells[0].Silent, s.cells[0].TaskTakes = true, 10*time.Second
		s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "")))
		s.pass(4 * time.Minute)
		if got := s.task("job"); got.State != task.Running || s.containers() != 0 {
			t.Fatalf("the task is %v, with %d containers", got.State, s.containers())
		}
		s.pass(2 * time.Minute)
		if got := s.task("job"); got.State != task.Completed || got.FailureReason != task.ReasonContainerMissing {
			t.Errorf("the task is %v: %q", got.State, got.FailureReason)
		}
	})
}

// An oddCell is a cell whose inventory the test makes up.
type oddCell struct {
	*memcell.Cell
	inventory func(*memcell.Cell) (auction.Inventory, error)
}

func (c oddCell) Inventory(context.Context) (auction.Inventory, error) { return c.inventory(c.Cell) }

func TestARollCallGivesNothingUpThatMayBeThere(t *testing.T) {
	var s *system
	empty := auction.Inventory{CellID: "cell-1"}
	tests := []struct {
		name      string
		inventory func(*memcell.Cell) (auction.Inventory, error)
	}{
		{"if the cell does not answer", func(*memcell.Cell) (auction.Inventory, error) { return empty, errors.New("no answer") }},
		{"if another cell answers", func(*memcell.Cell) (auction.Inventory, error) { return auction.Inventory{CellID: "cell-2"}, nil }},
		{"if it was placed in the meantime", func(c *memcell.Cell) (auction.Inventory, error) {
			i, err := c.Inventory(t.Context())
			s.must(s.BBS.Desire(s.ctx, desired("late", 1)))
			s.step()
			return i, err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			asked := 0
			s = newSystem(t, 1, func(o *diego.Options) {
				dial := o.Dial
				o.Dial = func(p bbs.CellPresence) (auction.CellClient, error) {
					c, err := dial(p)
					return oddCell{c.(*memcell.Cell), func(c *memcell.Cell) (auction.Inventory, error) {
						if asked++; asked > 1 {
							return c.Inventory(t.Context())
						}
						return tt.inventory(c)
					}}, err
				}
			})
			s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
			s.must(s.BBS.DesireTask(s.ctx, desiredTask("job", "")))
			s.cells[0].TaskTakes = time.Hour
			s.pass(3 * time.Second)
			before := s.record("web", 0)
			s.pass(5 * time.Minute)
			if asked != 1 {
				t.Fatalf("the cell was asked %d times", asked)
			}
			if now := s.record("web", 0); !now.Equal(&before) || s.task("job").State != task.Running {
				t.Errorf("%s and a task that is %v are left of %s", describe(&now), s.task("job").State, describe(&before))
			}
		})
	}
}

func TestThereNeedBeNoRollCalls(t *testing.T) {
	s := newSystem(t, 1, func(o *diego.Options) { o.InventoryInterval = -1 })
	s.must(s.BBS.Desire(s.ctx, desired("web", 1)))
	s.pass(3 * time.Second)
	s.cells[0].Silent = true
	s.cells[0].Crash("web", 0, "exit status 1")
	s.pass(20 * time.Minute)
	s.wantRecords("web/0 RUNNING ORDINARY cell-1")
	if s.containers() != 0 {
		t.Errorf("there are %d containers", s.containers())
	}
}
