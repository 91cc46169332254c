package converge

import (
	"iter"
	"math"
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
	// desired is how many instances there should be.
	desired int
	// troubled are the processes of which an instance does not run or has crashed.
	troubled map[string]ProcessCount
}

// visit notes what a look at a process has found.
func (c *census) visit(guid string, n ProcessCount) {
	if n.Running == n.Desired && n.Crashed == 0 {
		delete(c.troubled, guid)
		return
	}
	c.troubled[guid] = n
}

func (c *census) countDeployments(list iter.Seq2[*lrp.Deployment, error]) iter.Seq2[*lrp.Deployment, error] {
	return func(yield func(*lrp.Deployment, error) bool) {
		for d, err := range list {
			if err == nil {
				c.addDeployment(d, 1)
			}
			if !yield(d, err) {
				return
			}
		}
	}
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
		case lrp.DeploymentCreated, lrp.DeploymentChanged, lrp.DeploymentRemoved:
			c.addDeployment(l.DeploymentBefore, -1)
			c.addDeployment(l.DeploymentAfter, 1)
		}
	}
	if t := e.Task; t != nil {
		c.addTask(t.Before, -1)
		c.addTask(t.After, 1)
	}
}

func (c *census) addDeployment(d *lrp.Deployment, n int) {
	if d != nil {
		c.desired += n * d.Instances
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
	missing, crashing := 0, 0
	//lint:maporder a sum is the same in any order
	for _, n := range c.troubled {
		missing += n.Desired - n.Running
		crashing += min(n.Crashed, 1)
	}
	m.Gauge("lrps_desired", float64(c.desired))
	m.Gauge("lrps_missing", float64(missing))
	m.Gauge("processes_crashing", float64(crashing))
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
		name := auction.Label{Name: "domain", Value: d.Name}
		m.Gauge("domain_fresh", truth(d.Fresh(now)), name)
		left := math.Inf(1)
		if !d.ExpiresAt.IsZero() {
			left = d.ExpiresAt.Sub(now).Seconds()
		}
		m.Gauge("domain_expires_seconds", left, name)
	}
}
