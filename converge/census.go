package converge

import (
	"iter"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A census counts records by state: first as they are read, and then by events.
type census struct {
	lrps  [lrp.Crashed + 1][lrp.Suspect + 1]int
	tasks [task.Resolving + 1]int
}

func (c *census) countLRPs(list iter.Seq2[lrp.ActualLRP, error]) iter.Seq2[lrp.ActualLRP, error] {
	return func(yield func(lrp.ActualLRP, error) bool) {
		for r, err := range list {
			if err == nil {
				c.addLRP(&r, 1)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

func (c *census) countTasks(list iter.Seq2[*task.Task, error]) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) {
		for t, err := range list {
			if err == nil {
				c.addTask(t, 1)
			}
			if !yield(t, err) {
				return
			}
		}
	}
}

// follow counts what an event changes.
func (c *census) follow(e *storage.Event) {
	if l := e.LRP; l != nil {
		switch l.Kind {
		case lrp.InstanceCreated, lrp.InstanceChanged, lrp.InstanceRemoved:
			c.addLRP(l.Before, -1)
			c.addLRP(l.After, 1)
		}
	}
	if t := e.Task; t != nil {
		c.addTask(t.Before, -1)
		c.addTask(t.After, 1)
	}
}

func (c *census) addLRP(r *lrp.ActualLRP, n int) {
	if r != nil {
		c.lrps[r.State][r.Presence] += n
	}
}

func (c *census) addTask(t *task.Task, n int) {
	if t != nil {
		c.tasks[t.State] += n
	}
}

func (c *census) publish(m auction.Metrics, domains []lrp.Domain, now time.Time) {
	for state := lrp.Unclaimed; state <= lrp.Crashed; state++ {
		for presence := lrp.Ordinary; presence <= lrp.Suspect; presence++ {
			m.Gauge("lrps", float64(c.lrps[state][presence]),
				auction.Label{Name: "state", Value: state.String()}, auction.Label{Name: "presence", Value: presence.String()})
		}
	}
	for state := task.Pending; state <= task.Resolving; state++ {
		m.Gauge("tasks", float64(c.tasks[state]), auction.Label{Name: "state", Value: state.String()})
	}
	for _, d := range domains {
		m.Gauge("domain_fresh", truth(d.Fresh(now)), auction.Label{Name: "domain", Value: d.Name})
	}
}
