package celltest_test

import (
	"context"
	"errors"
	"iter"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/celltest"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A suite that no cell fails proves nothing. Each of these cells breaks one
// sentence of the contract, and the suite must say which.
var brokenCells = []struct {
	name string
	// sentence is the case that must fail.
	sentence string
	client   client
	reports  reports
	// pass runs after each second.
	pass func(*memcell.Cell)
}{
	{name: "counts nothing as taken", sentence: "answers/State lists what the cell has from the reservation on, and takes it from what remains",
		client: client{state: func(s auction.CellState) auction.CellState { s.Remaining = s.Total; return s }}},
	{name: "takes work of others", sentence: "answers/work for another cell is refused, and none of it begins",
		client: client{perform: func(c *memcell.Cell, w auction.Work) ([]auction.Rejection, error) {
			w.CellID = c.Presence.CellID
			return c.Perform(context.Background(), w)
		}}},
	{name: "drops what has no room", sentence: "answers/work without room is refused by its key with a reason, and the rest is taken",
		client: client{perform: func(c *memcell.Cell, w auction.Work) ([]auction.Rejection, error) {
			_, err := c.Perform(context.Background(), w)
			return nil, err
		}}},
	{name: "refuses what it has", sentence: "answers/work that the cell has already is neither refused nor begun twice",
		client: client{perform: func(c *memcell.Cell, w auction.Work) ([]auction.Rejection, error) {
			if len(containersOf(c)) > 0 {
				return []auction.Rejection{{Key: w.Items[0].Key, Reason: "it is here"}}, nil
			}
			return c.Perform(context.Background(), w)
		}}},
	{name: "stops any instance it has", sentence: "answers/StopLRP of what the cell does not have is not an error and stops nothing",
		client: client{stop: func(c *memcell.Cell, key lrp.Key, _ lrp.InstanceKey) error {
			for _, k := range containersOf(c) {
				c.End(k.GUID, executor.Stopped())
			}
			return nil
		}}},
	{name: "cancels by the task alone", sentence: "answers/CancelTask of what the cell does not have is not an error and ends nothing",
		client: client{cancel: func(c *memcell.Cell, guid, _ string) error {
			var err error
			for _, k := range containersOf(c) {
				err = errors.Join(err, c.CancelTask(context.Background(), guid, k.GUID))
			}
			return err
		}}},
	{name: "does not count reservations", sentence: "answers/an Inventory lists a container from its reservation until its end is reported",
		client: client{inventory: func(c *memcell.Cell, i auction.Inventory) auction.Inventory {
			i.Containers = nil
			for _, k := range containersOf(c) {
				if k.State == executor.Running {
					i.Containers = append(i.Containers, k.GUID)
				}
			}
			return i
		}}},

	{name: "forgets its cordon", sentence: "answers/a cordoned cell keeps what it has and takes no work",
		client: client{cordon: func(c *memcell.Cell) error { return c.Cordon(context.Background(), false) }}},

	{name: "does not claim", sentence: "instances/an instance is claimed before its work begins, and started once it runs",
		reports: reports{claim: func(rep.BBS, lrp.Claim, func() error) error { return nil }}},
	{name: "starts before it claims", sentence: "instances/an instance is claimed before its work begins, and started once it runs",
		reports: reports{claim: func(b rep.BBS, c lrp.Claim, claim func() error) error {
			return errors.Join(b.StartLRP(context.Background(), "web", 0, lrp.Start{DefinitionID: c.DefinitionID, Domain: "celltest", Instance: c.Instance}), claim())
		}}},
	{name: "runs though its claim was refused", sentence: "instances/after a claim that is refused the work never begins, and the reservation goes",
		reports: reports{claim: func(_ rep.BBS, _ lrp.Claim, claim func() error) error { return swallowRefusal(claim()) }}},
	{name: "runs on though its start was refused", sentence: "instances/after a start that is refused the instance ends",
		reports: reports{slot: onlyOwn, start: func(start func() error) error { return swallowRefusal(start()) }}},
	{name: "removes what crashed", sentence: "instances/an instance that fails is reported as crashed, once and with a reason",
		reports: reports{crash: func(b rep.BBS, c lrp.Crash, _ func() error) error {
			return b.RemoveLRP(context.Background(), "web", 0, lrp.Remove{DefinitionID: c.DefinitionID, Instance: c.Instance})
		}}},
	{name: "says a crash twice", sentence: "instances/an instance that fails is reported as crashed, once and with a reason",
		reports: reports{crash: func(_ rep.BBS, _ lrp.Crash, crash func() error) error { return errors.Join(crash(), crash()) }}},
	{name: "reports an end once only", sentence: "instances/an end that could not be reported is reported later",
		reports: reports{unread: true, crash: func(_ rep.BBS, _ lrp.Crash, crash func() error) error { return swallowLoss(crash()) }}},
	{name: "takes a stop for a crash", sentence: "instances/an instance that is stopped ends and is removed, and is not a crash",
		reports: reports{remove: func(b rep.BBS, c lrp.Remove, _ func() error) error {
			return b.CrashLRP(context.Background(), "web", 0, lrp.Crash{DefinitionID: c.DefinitionID, Domain: "celltest", Instance: c.Instance, Reason: "it ended"})
		}}},
	{name: "never looks at its records", sentence: "instances/a record of the cell without a container is removed",
		reports: reports{blind: true}},
	{name: "reports a start once only", sentence: "instances/an instance that runs and has no record is reported again",
		reports: reports{start: once()}},
	{name: "believes in itself", sentence: "instances/an instance that was replaced while its cell was missing ends",
		reports: reports{slot: onlyOwn, start: func(start func() error) error { return swallowRefusal(start()) }}},
	{name: "takes silence for consent", sentence: "instances/reports of an instance whose requests are lost are made again",
		reports: reports{crash: func(_ rep.BBS, _ lrp.Crash, crash func() error) error { return swallowLoss(crash()) }}},
	{name: "gives up a claim that was not answered", sentence: "instances/reports of an instance whose answers are lost do no harm",
		reports: reports{claim: func(_ rep.BBS, _ lrp.Claim, claim func() error) error { return refuseLoss(claim()) }}},

	{name: "begins a task unasked", sentence: "tasks/a task begins after its start was granted, and its end is reported once",
		reports: reports{startTask: func(func() (bool, error)) (bool, error) { return true, nil }}},
	{name: "begins a task though it may not", sentence: "tasks/after a start that is refused the task never begins, and the reservation goes",
		reports: reports{startTask: func(start func() (bool, error)) (bool, error) { _, err := start(); return true, swallowRefusal(err) }}},
	{name: "takes every end for a good one", sentence: "tasks/a task that fails is completed as failed, with a reason",
		reports: reports{complete: func(c *task.Complete) { c.Failed, c.FailureReason = false, "" }}},
	{name: "takes silence for a refusal", sentence: "tasks/a report of a task that is lost on its way is made again, and the task runs once",
		reports: reports{startTask: func(start func() (bool, error)) (bool, error) {
			run, err := start()
			return run, refuseLoss(err)
		}}},
	{name: "reports the end of a task once only", sentence: "tasks/the end of a task that could not be reported is reported later",
		reports: reports{unread: true}},
	{name: "reports what was cancelled", sentence: "tasks/CancelTask ends a task, of which the BBS knows already",
		client: client{cancel: func(c *memcell.Cell, guid, instance string) error {
			_ = c.BBS.CompleteTask(context.Background(), guid, task.Complete{CellID: c.Presence.CellID, InstanceGUID: instance})
			return c.CancelTask(context.Background(), guid, instance)
		}}},
	{name: "does not look after its tasks", sentence: "tasks/a task whose record was ended from outside ends",
		reports: reports{task: func(t *task.Task) { t.State = task.Running }}},
	{name: "never looks at its tasks", sentence: "tasks/a running task of the cell without a container is completed as failed",
		reports: reports{blind: true}},
	{name: "fails what never began", sentence: "tasks/a task whose work could not begin is rejected, so that it may be tried again",
		reports: reports{rejects: func(b rep.BBS, c task.Reject) error {
			return b.CompleteTask(context.Background(), "job", task.Complete{CellID: c.CellID, InstanceGUID: c.InstanceGUID, Attempt: c.Attempt, Failed: true, FailureReason: c.Reason})
		}}},

	{name: "does not say that it evacuates", sentence: "evacuation/an evacuating cell says so and refuses work",
		client: client{state: func(s auction.CellState) auction.CellState { s.Evacuating = false; return s }}},
	{name: "does not wait for the replacement", sentence: "evacuation/a running instance stays until its replacement runs",
		reports: reports{evacuate: func(_ bool, err error) (bool, error) { return false, err }}},
	{name: "leaves without a word", sentence: "evacuation/it stays though the request of its evacuation is lost",
		reports: reports{evacuate: func(keep bool, err error) (bool, error) { return keep, swallowLoss(err) }}},
	{name: "leaves without an answer", sentence: "evacuation/it stays though the answer to its evacuation is lost",
		reports: reports{evacuate: func(keep bool, err error) (bool, error) { return keep, swallowLoss(err) }}},
	{name: "drops what has not started", sentence: "evacuation/an instance that has not started is given up",
		reports: reports{quiet: true}},
	{name: "hides what failed at the end", sentence: "evacuation/an instance that fails while it waits for its replacement is reported",
		reports: reports{quiet: true}},
	{name: "stops nothing", sentence: "evacuation/an instance that was stopped before ends without a replacement",
		client: client{stop: func(*memcell.Cell, lrp.Key, lrp.InstanceKey) error { return nil }}},
	{name: "goes on with an evacuation that was given up", sentence: "evacuation/an instance stays where it is if the evacuation is given up",
		client: client{goOn: func(*memcell.Cell) error { return nil }}},
	{name: "keeps what was replaced", sentence: "evacuation/an instance whose replacement runs ends though the evacuation is given up",
		reports: reports{slot: onlyOwn, start: func(start func() error) error { return swallowRefusal(start()) }}},
	{name: "takes no task to its end", sentence: "evacuation/a task runs to its end",
		pass: func(c *memcell.Cell) {
			status, _ := c.Evacuation(context.Background())
			for _, k := range containersOf(c) {
				if status.Evacuating && k.Tags[executor.TagTaskGUID] != "" {
					c.End(k.GUID, executor.Stopped())
				}
			}
		}},
}

const brokenCell = "DIEGO_CELLTEST_BROKEN"

func TestTheSuiteFindsWhatIsBroken(t *testing.T) {
	for _, c := range brokenCells {
		t.Run(c.name, func(t *testing.T) {
			if os.Getenv(brokenCell) == "" {
				child := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$/^"+strings.ReplaceAll(c.sentence, "/", "$/^")+"$", "-test.count=1")
				child.Env = append(os.Environ(), brokenCell+"=1")
				output, err := child.CombinedOutput()
				if err == nil || !strings.Contains(string(output), "--- FAIL: "+t.Name()+"/"+strings.ReplaceAll(c.sentence, " ", "_")) {
					t.Errorf("the suite does not find that a cell is broken that %s: %v\n%s", c.name, err, output)
				}
				return
			}
			celltest.Run(t, func(_ testing.TB, o celltest.Options) celltest.Harness {
				c.reports.BBS = o.BBS
				h := openModel(o, &c.reports, c.pass)
				c.client.Cell = h.Cell.(*memcell.Cell)
				h.Cell = &c.client
				return h
			})
		})
	}
}

// Each case of the suite is one that some broken cell fails.
func TestEachCaseFindsABrokenCell(t *testing.T) {
	broken := map[string]bool{}
	for _, c := range brokenCells {
		broken[c.sentence] = true
	}
	for _, sentence := range celltest.Sentences() {
		if !broken[sentence] {
			t.Errorf("no broken cell fails %q", sentence)
		}
		delete(broken, sentence)
	}
	for sentence := range broken {
		t.Errorf("there is no case %q", sentence)
	}
}

func isRefusal(err error) bool {
	var l *lrp.TransitionError
	var t *task.TransitionError
	return errors.As(err, &l) || errors.As(err, &t)
}

func swallowRefusal(err error) error {
	if isRefusal(err) {
		return nil
	}
	return err
}

// refuseLoss takes silence for a refusal.
func refuseLoss(err error) error {
	if err != nil {
		return &lrp.TransitionError{}
	}
	return nil
}

func swallowLoss(err error) error {
	if isRefusal(err) {
		return err
	}
	return nil
}

// once makes a report of a start only the first time.
func once() func(func() error) error {
	var said bool
	return func(start func() error) error {
		if said {
			return nil
		}
		said = true
		return start()
	}
}

// onlyOwn leaves out what other cells have.
func onlyOwn(s lrp.Slot) lrp.Slot {
	var own []lrp.ActualLRP
	for _, r := range s.Records {
		if r.CellID == "cell-1" {
			own = append(own, r)
		}
	}
	s.Records = own
	return s
}

// containersOf are those of a model, which never fails to say.
func containersOf(c *memcell.Cell) []executor.Container {
	list, _ := c.Containers(context.Background())
	return list
}

// A client is a model cell with some of its answers replaced.
type client struct {
	*memcell.Cell
	state     func(auction.CellState) auction.CellState
	perform   func(*memcell.Cell, auction.Work) ([]auction.Rejection, error)
	stop      func(*memcell.Cell, lrp.Key, lrp.InstanceKey) error
	cancel    func(c *memcell.Cell, taskGUID, instanceGUID string) error
	inventory func(*memcell.Cell, auction.Inventory) auction.Inventory
	cordon    func(*memcell.Cell) error
	goOn      func(*memcell.Cell) error
}

func (c *client) Cordon(ctx context.Context, cordoned bool) error {
	if c.cordon != nil {
		return c.cordon(c.Cell)
	}
	return c.Cell.Cordon(ctx, cordoned)
}

func (c *client) CancelEvacuation(ctx context.Context) error {
	if c.goOn != nil {
		return c.goOn(c.Cell)
	}
	return c.Cell.CancelEvacuation(ctx)
}

func (c *client) State(ctx context.Context) (auction.CellState, error) {
	s, err := c.Cell.State(ctx)
	if c.state != nil {
		s = c.state(s)
	}
	return s, err
}

func (c *client) Perform(ctx context.Context, w auction.Work) ([]auction.Rejection, error) {
	if c.perform != nil {
		return c.perform(c.Cell, w)
	}
	return c.Cell.Perform(ctx, w)
}

func (c *client) StopLRP(ctx context.Context, key lrp.Key, instance lrp.InstanceKey) error {
	if c.stop != nil {
		return c.stop(c.Cell, key, instance)
	}
	return c.Cell.StopLRP(ctx, key, instance)
}

func (c *client) CancelTask(ctx context.Context, taskGUID, instanceGUID string) error {
	if c.cancel != nil {
		return c.cancel(c.Cell, taskGUID, instanceGUID)
	}
	return c.Cell.CancelTask(ctx, taskGUID, instanceGUID)
}

func (c *client) Inventory(ctx context.Context) (auction.Inventory, error) {
	i, err := c.Cell.Inventory(ctx)
	if c.inventory != nil {
		i = c.inventory(c.Cell, i)
	}
	return i, err
}

// reports are the calls of a cell with some of them replaced. What gets a
// function may make the call with it.
type reports struct {
	rep.BBS
	claim     func(b rep.BBS, c lrp.Claim, claim func() error) error
	start     func(start func() error) error
	crash     func(b rep.BBS, c lrp.Crash, crash func() error) error
	remove    func(b rep.BBS, c lrp.Remove, remove func() error) error
	evacuate  func(keep bool, err error) (bool, error)
	startTask func(start func() (bool, error)) (bool, error)
	complete  func(*task.Complete)
	rejects   func(rep.BBS, task.Reject) error
	slot      func(lrp.Slot) lrp.Slot
	task      func(*task.Task)
	// blind cells see no list of records.
	blind bool
	// unread is a cell that takes what it cannot read for what is not there.
	unread bool
	// quiet is a cell that does not report what it evacuates.
	quiet bool
}

func (r *reports) ActualLRPs(ctx context.Context, f storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	if r.blind {
		return func(func(lrp.ActualLRP, error) bool) {}
	}
	return r.BBS.ActualLRPs(ctx, f)
}

func (r *reports) Tasks(ctx context.Context, f storage.TaskFilter) iter.Seq2[*task.Task, error] {
	if r.blind {
		return func(func(*task.Task, error) bool) {}
	}
	return r.BBS.Tasks(ctx, f)
}

func (r *reports) Slot(ctx context.Context, guid string, index int) (lrp.Slot, error) {
	s, err := r.BBS.Slot(ctx, guid, index)
	if err != nil && r.unread {
		return lrp.Slot{ProcessGUID: guid, Index: index}, nil
	}
	if r.slot != nil {
		s = r.slot(s)
	}
	return s, err
}

func (r *reports) Task(ctx context.Context, guid string) (*task.Task, error) {
	t, err := r.BBS.Task(ctx, guid)
	if err != nil && r.unread {
		return nil, storage.ErrNotFound
	}
	if r.task != nil && err == nil && t.State == task.Completed {
		seen := *t
		r.task(&seen)
		return &seen, nil
	}
	return t, err
}

func (r *reports) ClaimLRP(ctx context.Context, guid string, index int, c lrp.Claim) error {
	claim := func() error { return r.BBS.ClaimLRP(ctx, guid, index, c) }
	if r.claim != nil {
		return r.claim(r.BBS, c, claim)
	}
	return claim()
}

func (r *reports) StartLRP(ctx context.Context, guid string, index int, c lrp.Start) error {
	start := func() error { return r.BBS.StartLRP(ctx, guid, index, c) }
	if r.start != nil {
		return r.start(start)
	}
	return start()
}

func (r *reports) CrashLRP(ctx context.Context, guid string, index int, c lrp.Crash) error {
	crash := func() error { return r.BBS.CrashLRP(ctx, guid, index, c) }
	if r.crash != nil {
		return r.crash(r.BBS, c, crash)
	}
	return crash()
}

func (r *reports) RemoveLRP(ctx context.Context, guid string, index int, c lrp.Remove) error {
	remove := func() error { return r.BBS.RemoveLRP(ctx, guid, index, c) }
	if r.remove != nil {
		return r.remove(r.BBS, c, remove)
	}
	return remove()
}

func (r *reports) EvacuateClaimedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateClaimed) (bool, error) {
	if r.quiet {
		return false, nil
	}
	return r.BBS.EvacuateClaimedLRP(ctx, guid, index, c)
}

func (r *reports) EvacuateCrashedLRP(ctx context.Context, guid string, index int, c lrp.EvacuateCrashed) (bool, error) {
	if r.quiet {
		return false, nil
	}
	return r.BBS.EvacuateCrashedLRP(ctx, guid, index, c)
}

func (r *reports) EvacuateRunningLRP(ctx context.Context, guid string, index int, c lrp.EvacuateRunning) (bool, error) {
	keep, err := r.BBS.EvacuateRunningLRP(ctx, guid, index, c)
	if r.evacuate != nil {
		return r.evacuate(keep, err)
	}
	return keep, err
}

func (r *reports) StartTask(ctx context.Context, guid string, c task.Start) (bool, error) {
	start := func() (bool, error) { return r.BBS.StartTask(ctx, guid, c) }
	if r.startTask != nil {
		return r.startTask(start)
	}
	return start()
}

func (r *reports) CompleteTask(ctx context.Context, guid string, c task.Complete) error {
	if r.complete != nil {
		r.complete(&c)
	}
	return r.BBS.CompleteTask(ctx, guid, c)
}

func (r *reports) RejectStartedTask(ctx context.Context, guid string, c task.Reject) error {
	if r.rejects != nil {
		return r.rejects(r.BBS, c)
	}
	return r.BBS.RejectStartedTask(ctx, guid, c)
}
