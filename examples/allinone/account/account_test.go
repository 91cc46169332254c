package account_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/examples/allinone/account"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

var epoch = time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)

// A story is one index of a process, to which commands happen, and what is
// told of it.
type story struct {
	t          *testing.T
	account    *account.Account
	now        time.Time
	slot       lrp.Slot
	deployment *lrp.Deployment
	lines      []string
}

func newStory(t *testing.T) *story {
	s := &story{t: t, account: account.New(lrp.RestartPolicy{}), now: epoch, slot: lrp.Slot{ProcessGUID: "web", Index: 1}}
	change, err := lrp.CreateFrom(lrp.DesiredLRP{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 3},
		Definition: lrp.Definition{RunInfo: runInfo()},
	}, epoch)
	s.changed(change, err)
	return s
}

func runInfo() executor.RunInfo {
	return executor.RunInfo{RootFS: "host:", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "me"}}}
}

// changed tells of what a consumer has done.
func (s *story) changed(c lrp.Change, err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	if c.After != nil {
		s.deployment = c.After
	}
	s.tell(c.Events)
}

func (s *story) do(commands ...lrp.Command) {
	s.t.Helper()
	for _, c := range commands {
		d, err := lrp.Step(s.slot, s.deployment, c, s.now, lrp.Policy{})
		if err != nil {
			s.t.Fatalf("%s: %v", c.Name(), err)
		}
		s.slot = s.slot.Apply(d)
		if d.Deployment != nil {
			s.deployment = d.Deployment
		}
		s.tell(d.Events)
	}
}

func (s *story) tell(events []lrp.Event) {
	for i := range events {
		if line, told := s.account.Line(storage.Event{At: s.now, LRP: &events[i]}); told {
			s.lines = append(s.lines, line.Subject+" "+line.Text)
		}
	}
}

// place has the auctioneer choose one cell of two for the index.
func instance(guid, cell string) lrp.InstanceKey {
	return lrp.InstanceKey{InstanceGUID: guid, CellID: cell}
}

func start(i lrp.InstanceKey, ports ...lrp.PortMapping) lrp.Start {
	return lrp.Start{Instance: i, Domain: "apps", NetInfo: lrp.NetInfo{Address: "10.0.0.7", Ports: ports}}
}

func crash(i lrp.InstanceKey) lrp.Crash {
	return lrp.Crash{Instance: i, Domain: "apps", Reason: "exit status 3"}
}

func TestWhatHappensIsToldOnce(t *testing.T) {
	one, two := instance("i1", "cell-1"), instance("i2", "cell-2")
	for _, c := range []struct {
		name  string
		story func(*story)
		want  []string
	}{
		{"an instance runs", func(s *story) {
			s.do(lrp.CreateMissing{})
			s.do(lrp.Claim{Instance: one, Reason: "score 0.2000, least load: 0.2000 against 0.3000 on cell-2; parts against cell-2: memory in use 0.6/0.9"}, start(one, lrp.PortMapping{ContainerPort: 8080, HostPort: 61001}))
		}, []string{
			"web desired: 3 instances of definition web",
			"web/1 placed on cell-1: score 0.2000, least load: 0.2000 against 0.3000 on cell-2",
			"web/1 runs on cell-1 at http://10.0.0.7:61001",
			"web definition web proved healthy",
		}},
		{"an instance crashes and is restarted at once", func(s *story) {
			s.do(lrp.CreateMissing{}, lrp.Claim{Instance: one}, start(one), crash(one), lrp.Claim{Instance: two},
				start(two, lrp.PortMapping{ContainerPort: 1, HostPort: 2}, lrp.PortMapping{ContainerPort: 3, HostPort: 4}))
		}, []string{
			"web desired: 3 instances of definition web",
			"web/1 placed on cell-1",
			"web/1 runs on cell-1",
			"web definition web proved healthy",
			"web/1 crashed: exit status 3 (crash 1, restarts at once)",
			"web/1 placed on cell-2",
			"web/1 restarted after crash 1: runs on cell-2 at http://10.0.0.7:2 and http://10.0.0.7:4",
		}},
		{"an instance crashes until it has to wait", func(s *story) {
			s.do(lrp.CreateMissing{})
			s.lines = nil
			for range 4 {
				s.do(start(one), crash(one))
			}
			s.now = epoch.Add(time.Minute)
			s.do(lrp.Restart{DefinitionID: "web"})
		}, []string{
			"web/1 runs on cell-1", "web definition web proved healthy", "web/1 crashed: exit status 3 (crash 1, restarts at once)",
			"web/1 restarted after crash 1: runs on cell-1", "web/1 crashed: exit status 3 (crash 2, restarts at once)",
			"web/1 restarted after crash 2: runs on cell-1", "web/1 crashed: exit status 3 (crash 3, restarts at once)",
			"web/1 restarted after crash 3: runs on cell-1",
			"web/1 crashed: exit status 3 (crash 4); back-off until 12:01:00, for 1m0s",
			"web/1 waits for a cell: the wait after crash 4 is over",
		}},
		{"an instance is given up", func(s *story) {
			s.do(lrp.CreateMissing{})
			for range 201 {
				s.do(start(one), crash(one))
				if s.slot.Records[0].State == lrp.Crashed {
					s.now = s.now.Add(time.Hour)
					s.do(lrp.Restart{DefinitionID: "web"})
				}
				s.lines = nil
			}
			s.do(start(one), crash(one))
		}, []string{
			"web/1 restarted after crash 201: runs on cell-1",
			"web/1 crashed: exit status 3 (crash 202); given up: it has crashed too often",
		}},
		{"no cell has room", func(s *story) {
			s.do(lrp.CreateMissing{}, lrp.Fail{DefinitionID: "web", Error: lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: "64 MiB of memory are lacking on cell-1"}})
		}, []string{
			"web desired: 3 instances of definition web",
			"web/1 could not be placed: insufficient resources: 64 MiB of memory are lacking on cell-1",
		}},
		{"a container is gone", func(s *story) {
			s.do(lrp.CreateMissing{}, start(one))
			s.lines = nil
			s.do(lrp.Remove{Instance: one}, lrp.Claim{Instance: two})
		}, []string{"web/1 ended on cell-1", "web/1 placed on cell-2"}},
		{"a cell goes missing and is back", func(s *story) {
			s.do(lrp.CreateMissing{}, start(one))
			s.lines = nil
			s.do(lrp.MarkSuspect{CellID: "cell-1"}, lrp.Recover{CellID: "cell-1"})
		}, []string{
			"web/1 cell cell-1 is missing: a replacement is on its way",
			"web/1 moved: cell cell-1 is missing",
			"web/1 cell cell-1 is not missing any more",
			"web/1 not needed any more: cell cell-1 is not missing any more",
		}},
		{"an instance becomes unready", func(s *story) {
			unready := start(one)
			unready.Unready = true
			s.do(lrp.CreateMissing{}, start(one))
			s.lines = nil
			s.do(unready, start(one))
		}, []string{"web/1 is not ready for traffic", "web/1 is ready for traffic"}},
		{"the process is scaled, and deleted", func(s *story) {
			n := 1
			s.changed(s.deployment.Update(lrp.Update{Instances: &n}))
			s.changed(s.deployment.Delete(), nil)
		}, []string{"web desired: 3 instances of definition web", "web scaled from 3 instances to 1", "web deleted"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStory(t)
			c.story(s)
			if !slices.Equal(s.lines, c.want) {
				t.Errorf("got\n\t%s\nwant\n\t%s", strings.Join(s.lines, "\n\t"), strings.Join(c.want, "\n\t"))
			}
		})
	}
}

func TestTheWaitOfAProcessWithAPolicyOfItsOwnIsTold(t *testing.T) {
	a := account.New(lrp.RestartPolicy{})
	d := &lrp.Deployment{ProcessGUID: "web", Settings: lrp.Settings{Instances: 1, Policies: lrp.Policies{Restart: &lrp.RestartPolicy{MinBackoff: time.Minute}}}}
	a.Line(storage.Event{At: epoch, LRP: &lrp.Event{Kind: lrp.DeploymentCreated, DeploymentAfter: d}})
	crashed := &lrp.ActualLRP{Key: lrp.Key{ProcessGUID: "web"}, State: lrp.Crashed, CrashCount: 4, CrashReason: "exit status 1", Since: epoch}
	line, _ := a.Line(storage.Event{At: epoch, LRP: &lrp.Event{Kind: lrp.InstanceCrashed, After: crashed}})
	if want := "crashed: exit status 1 (crash 4); back-off until 12:02:00, for 2m0s"; line.Text != want {
		t.Errorf("%q, want %q", line.Text, want)
	}
}

func TestALineHasNoControlCharacters(t *testing.T) {
	line := account.Line{At: epoch, Subject: "web/0", Text: "crashed: /a\x1b[2J\u009bb: größer als \"1\"\n12:00:00.000  web/1"}
	if got, want := line.String(), `12:00:00.000  web/0          crashed: /a\x1b[2J\u009bb: größer als "1"\n12:00:00.000  web/1`; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestATaskIsTold(t *testing.T) {
	a := account.New(lrp.RestartPolicy{})
	a.Placed(auction.Result{Placements: []auction.Placement{{
		Item: &auction.Item{Key: auction.Key{Kind: auction.Task, GUID: "sum", Domain: "apps"}}, Choice: auction.Choice{CellID: "cell-1"},
	}}})
	var record *task.Task
	var got []string
	for _, c := range []task.Command{
		task.Desire{GUID: "sum", Domain: "apps", Definition: task.Definition{RunInfo: runInfo(), ResultFile: "/sum"}},
		task.Start{CellID: "cell-1", InstanceGUID: "i1"},
		task.Complete{CellID: "cell-1", InstanceGUID: "i1", Result: "42"},
		task.Resolve{}, task.Delete{},
	} {
		d, err := task.Step(record, c, epoch, task.Policy{})
		if err != nil {
			t.Fatal(err)
		}
		record = d.Write.After
		for i := range d.Events {
			if line, told := a.Line(storage.Event{At: epoch, Task: &d.Events[i]}); told {
				got = append(got, line.String())
			}
		}
	}
	want := []string{
		`12:00:00.000  task sum       desired`,
		`12:00:00.000  task sum       runs on cell-1: no other cell can take it`,
		`12:00:00.000  task sum       succeeded: "42"`,
		`12:00:00.000  task sum       is being dealt with`,
		`12:00:00.000  task sum       deleted`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

func TestWhatCannotBeReadIsToldAndFreshDomainsAreNot(t *testing.T) {
	a := account.New(lrp.RestartPolicy{})
	line, told := a.Line(storage.Event{At: epoch, Quarantine: &storage.Quarantine{Key: storage.TaskKey("sum"), Reason: "no JSON"}})
	if want := "cannot be read and was put aside: no JSON"; !told || line.Text != want || line.Subject == "" {
		t.Errorf("told %v: %+v, want %q", told, line, want)
	}
	line, told = a.Line(storage.Event{At: epoch, Gap: &storage.Gap{After: 480, First: 1795348800000000}})
	if want := "may have gone back: what followed event 480 may be lost"; !told || line.Text != want || line.Subject != "the store" {
		t.Errorf("told %v: %+v, want %q", told, line, want)
	}
	index := 0
	session := &storage.SessionEvent{Kind: storage.SessionExec, ProcessGUID: "web", Index: &index, Caller: "alice", Command: []string{"ls"}}
	line, told = a.Line(storage.Event{At: epoch, Session: session})
	if want := "alice runs ls"; !told || line.Text != want || line.Subject != "web/0" {
		t.Errorf("told %v: %+v, want %q", told, line, want)
	}
	if line, told := a.Line(storage.Event{At: epoch, Domain: &storage.DomainEvent{Domain: "apps"}}); told {
		t.Errorf("told of a domain: %v", line)
	}
}
