package storagetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// An operation does one thing to a store. It draws nothing at random, so that
// it can be done to two stores.
type operation struct {
	name string
	do   func(ctx context.Context, s storage.Store) error
}

// A world makes random operations on a few processes and tasks, which its
// guids begin with prefix. Most go through Step, so that records and events
// are those of real life.
type world struct {
	prefix string
	rng    *rand.Rand
	// now goes ahead with every operation: no two records have one epoch.
	now func() time.Time
	// options are for Apply.
	options *storage.Options
}

func (w *world) pick(names ...string) string { return names[w.rng.IntN(len(names))] }

func (w *world) process() string { return w.prefix + w.pick("app", "App", "app_") }

func (w *world) instance() lrp.InstanceKey {
	cell := w.pick("cell-1", "cell-2", "Cell-1")
	return lrp.InstanceKey{InstanceGUID: fmt.Sprintf("%s-%d", cell, w.rng.IntN(3)), CellID: cell}
}

func (w *world) operation() operation {
	switch n := w.rng.IntN(100); {
	case n < 60:
		return w.slot()
	case n < 75:
		return w.deployment()
	case n < 97:
		return w.task()
	default:
		name, ttl := w.pick("domain", "Domain", "other"), time.Duration(w.rng.IntN(2))*time.Hour
		return operation{fmt.Sprintf("domain %s for %v", name, ttl), func(ctx context.Context, s storage.Store) error {
			var b storage.Batch
			b.AddDomain(name, ttl)
			_, err := s.Commit(ctx, b)
			return err
		}}
	}
}

func (w *world) slot() operation {
	guid, index, command, now := w.process(), w.rng.IntN(3), w.command(), w.now()
	return operation{
		fmt.Sprintf("%s %s/%d %+v", command.Name(), guid, index, command),
		func(ctx context.Context, s storage.Store) error {
			_, _, err := storage.ApplySlot(ctx, s, guid, index, w.options, func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
				return lrp.Step(slot, d, command, now, lrp.Policy{})
			})
			return err
		},
	}
}

func (w *world) command() lrp.Command {
	i := w.instance()
	net := lrp.NetInfo{Address: "10.0.0." + i.CellID, Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: uint16(1 + w.rng.IntN(60000))}}}
	reason := w.pick("exit 1", "exit 137 🙂", "")
	switch w.rng.IntN(19) {
	case 0, 1, 2:
		return lrp.CreateMissing{}
	case 3, 4:
		return lrp.Claim{Instance: i}
	case 5, 6, 7:
		return lrp.Start{Domain: "domain", Instance: i, NetInfo: net, Unready: w.rng.IntN(2) == 0, Zone: w.pick("", "z1")}
	case 8:
		return lrp.Crash{Domain: "domain", Instance: i, Reason: reason}
	case 9:
		return lrp.Remove{Instance: i}
	case 10:
		return lrp.EvacuateRunning{Instance: i, NetInfo: net, RunningInstances: 2}
	case 11:
		return lrp.RemoveEvacuating{Instance: i}
	case 12:
		return lrp.MarkSuspect{CellID: i.CellID}
	case 13:
		return lrp.Recover{CellID: i.CellID}
	case 14:
		return lrp.RemoveSuspect{}
	case 15:
		return lrp.AdvanceRollout{}
	case 16:
		return lrp.Fail{Error: lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: reason}}
	case 17:
		return lrp.Retire{}
	default:
		return lrp.StopExtra{MissingCells: []string{i.CellID}}
	}
}

func (w *world) deployment() operation {
	guid, now := w.process(), w.now()
	apply := func(name string, decide func(*lrp.Deployment) (lrp.Change, error)) operation {
		return operation{name + " " + guid, func(ctx context.Context, s storage.Store) error {
			_, _, err := storage.ApplyDeployment(ctx, s, guid, w.options, func(d *lrp.Deployment) (lrp.Change, error) {
				if d == nil && name != "create" {
					return lrp.Change{}, nil
				}
				return decide(d)
			})
			return err
		}}
	}
	switch w.rng.IntN(8) {
	case 0, 1, 2:
		return apply("create", func(d *lrp.Deployment) (lrp.Change, error) {
			if d != nil {
				return lrp.Change{}, storage.ErrExists
			}
			fresh := deployment(guid)
			return lrp.Create(lrp.DeploymentDefinition{
				ProcessGUID: guid, Domain: fresh.Domain, Settings: fresh.Settings,
				DefinitionID: "d", Definition: fresh.Definitions["d"],
			}, now)
		})
	case 3:
		return apply("delete", func(d *lrp.Deployment) (lrp.Change, error) { return d.Delete(), nil })
	case 4:
		id := w.pick("d", "D", "e")
		definition := lrp.Definition{RunInfo: runInfo()}
		return apply("new definition "+id, func(d *lrp.Deployment) (lrp.Change, error) {
			return d.Update(lrp.Update{DefinitionID: &id, Definition: &definition})
		})
	case 5:
		id := w.pick("d", "D", "e")
		return apply("activate "+id, func(d *lrp.Deployment) (lrp.Change, error) { return d.Activate(id, now) })
	case 6:
		return apply("prune", func(d *lrp.Deployment) (lrp.Change, error) {
			return d.PruneDefinitions(func(string) bool { return false }), nil
		})
	default:
		instances := w.rng.IntN(4)
		return apply(fmt.Sprint("scale to ", instances), func(d *lrp.Deployment) (lrp.Change, error) {
			return d.Update(lrp.Update{Instances: &instances})
		})
	}
}

func (w *world) task() operation {
	guid, i, now := w.prefix+w.pick("task", "Task", "task_"), w.instance(), w.now()
	var command task.Command
	switch w.rng.IntN(8) {
	case 0, 1:
		command = task.Desire{GUID: guid, Domain: "domain", Definition: pending(guid).Definition}
	case 2, 3:
		command = task.Start{CellID: i.CellID, InstanceGUID: i.InstanceGUID}
	case 4:
		command = task.Complete{CellID: i.CellID, InstanceGUID: i.InstanceGUID, Result: "done 🙂"}
	case 5:
		command = task.Reject{Reason: "no room"}
	case 6:
		command = task.Resolve{}
	default:
		command = task.Delete{}
	}
	return operation{
		fmt.Sprintf("%s task %s", command.Name(), guid),
		func(ctx context.Context, s storage.Store) error {
			_, _, err := storage.ApplyTask(ctx, s, guid, w.options, func(t *task.Task) (task.Decision, error) {
				return task.Step(t, command, now, task.Policy{})
			})
			return err
		},
	}
}

// refusal reports whether err is a rule's, not the store's.
func refusal(err error) bool {
	var l *lrp.TransitionError
	var t *task.TransitionError
	var r *lrp.RefusedError
	return errors.As(err, &l) || errors.As(err, &t) || errors.As(err, &r) || err == storage.ErrExists
}
