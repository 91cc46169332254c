package bbs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A library has deployments, and a clock that goes on by 100 ms for each MiB of
// definitions that is read. A read of revisions, by any other method, panics.
type library struct {
	storage.Reader
	deployments map[string]*lrp.Deployment
	errs        map[string]error // of single deployments
	end         error            // of a list, before its last deployment
	now         time.Time
	read        []string
	each        func() // called after each deployment
}

func (l *library) Deployments(_ context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	return func(yield func(*lrp.Deployment, error) bool) {
		for i, guid := range slices.Sorted(slices.Values(f.ProcessGUIDs)) {
			l.read = append(l.read, guid)
			d := l.deployments[guid]
			switch {
			case l.end != nil && i == len(f.ProcessGUIDs)-1:
				yield(nil, l.end)
				return
			case l.errs[guid] != nil:
				if !yield(nil, l.errs[guid]) {
					return
				}
			case d != nil:
				if len(f.DefinitionIDs) > 0 {
					d = storage.WithDefinitions(d, f.DefinitionIDs...)
				}
				for _, definition := range d.Definitions {
					for _, file := range definition.VolumeMountedFiles {
						l.now = l.now.Add(time.Duration(len(file.Content)) * 100 * time.Millisecond >> 20)
					}
				}
				if l.each != nil {
					l.each()
				}
				if !yield(d, nil) {
					return
				}
			}
		}
	}
}

// want adds processes with one instance each, and returns what requests them.
func (l *library) want(domain string, processes, size int) (effects []lrp.Effect) {
	for i := range processes {
		guid := fmt.Sprintf("%s-%03d", domain, i)
		l.deployments[guid] = &lrp.Deployment{
			ProcessGUID: guid, Domain: domain, ActiveDefinitionID: "d",
			Definitions: map[string]lrp.Definition{"d": {RunInfo: executor.RunInfo{
				RootFS: "preloaded:linux", VolumeMountedFiles: []executor.File{{Path: "f", Content: strings.Repeat("x", size)}},
			}}},
		}
		effects = append(effects, lrp.Effect{Kind: lrp.RequestStart, Key: lrp.Key{ProcessGUID: guid, DefinitionID: "d", Domain: domain}})
	}
	return effects
}

// newShelf is an outbox over a library. It notes the guids of each batch of starts,
// and how many deployments had been read then.
func newShelf() (x *outbox, l *library, batches *[][]string, readThen *[]int) {
	l = &library{deployments: map[string]*lrp.Deployment{}, now: time.Unix(1e9, 0)}
	batches, readThen = new([][]string), new([]int)
	return &outbox{
		store: l, metrics: auction.NoMetrics{}, logger: slog.New(slog.DiscardHandler), local: newMailbox(), remote: newMailbox(),
		now:      func() time.Time { return l.now },
		callBack: func(*task.Task) {}, rollout: func(context.Context, string) error { return nil },
		start: func(items ...auction.Item) {
			var guids []string
			for _, i := range items {
				guids = append(guids, i.GUID)
			}
			*batches, *readThen = append(*batches, guids), append(*readThen, len(l.read))
		},
	}, l, batches, readThen
}

// mustStartOnce checks that each process of a library was started once.
func (l *library) mustStartOnce(t *testing.T, batches [][]string) {
	t.Helper()
	got := slices.Sorted(slices.Values(slices.Concat(batches...)))
	if want := slices.Sorted(maps.Keys(l.deployments)); !slices.Equal(got, want) {
		t.Errorf("%d starts were requested, want each of %d once", len(got), len(want))
	}
}

func TestStartsOfDefinitionsThatAreReadQuicklyAreOneBatch(t *testing.T) {
	x, l, batches, _ := newShelf()
	effects := append(l.want("a", 50, 10), l.want("b", 100, 10)...)
	x.Carry(append(effects, effects...), []task.Effect{{Kind: task.RequestStart, Task: &task.Task{GUID: "job"}}})
	x.tickLocal(t.Context())
	l.deployments["job"] = nil
	if l.mustStartOnce(t, *batches); len(*batches) != 1 {
		t.Errorf("there are %d batches, want 1", len(*batches))
	}
}

func TestOnlyTheDefinitionsThatArePlacedAreRead(t *testing.T) {
	x, l, batches, _ := newShelf()
	effects := l.want("a", 1, 10)
	for i := range lrp.MaxDefinitions - 1 { // of an MiB each
		l.deployments["a-000"].Definitions[fmt.Sprint(i)] = l.deployments[l.want("b", 1, 1<<20)[0].Key.ProcessGUID].Definitions["d"]
	}
	delete(l.deployments, "b-000")
	began := l.now
	x.Carry(effects, nil)
	x.tickLocal(t.Context())
	if l.mustStartOnce(t, *batches); l.now.Sub(began) > time.Millisecond {
		t.Errorf("the reads take %v", l.now.Sub(began))
	}
}

func TestLargeDefinitionsOfOneDomainDoNotKeepTheStartsOfOthersWaiting(t *testing.T) {
	x, l, batches, readThen := newShelf()
	effects := append(l.want("large", 100, 1<<20), l.want("small", 40, 10)...)
	x.Carry(effects, []task.Effect{{Kind: task.RequestStart, Task: &task.Task{GUID: "job"}}})
	x.tickLocal(t.Context())
	l.deployments["job"] = nil
	l.mustStartOnce(t, *batches)
	large := 0 // that are read before the last of the others is requested
	for i, batch := range *batches {
		if slices.ContainsFunc(batch, func(guid string) bool { return !strings.HasPrefix(guid, "large") }) {
			large = (*readThen)[i] - 40
		}
	}
	if large > 3 {
		t.Errorf("%d large definitions are read before all others' starts are requested, want at most 3", large)
	}
	if n := len(*batches); n < 10 || n > 60 {
		t.Errorf("there are %d batches of placement, want pieces of two large definitions or more", n)
	}
}

func TestWhatComesWhileLargeDefinitionsAreReadDoesNotWaitForTheirEnd(t *testing.T) {
	x, l, batches, readThen := newShelf()
	var called, calledThen int
	x.callBack = func(*task.Task) { called, calledThen = called+1, len(l.read) }
	x.Carry(l.want("large", 100, 1<<20), nil)
	late := l.want("late", 3, 10)
	l.each = func() {
		if len(l.read) == 10 {
			x.Carry(late, []task.Effect{{Kind: task.CallBack, Task: &task.Task{GUID: "job"}}})
		}
	}
	x.tickLocal(t.Context())
	l.mustStartOnce(t, *batches)
	for i, batch := range *batches {
		if slices.ContainsFunc(batch, func(guid string) bool { return strings.HasPrefix(guid, "late") }) && (*readThen)[i] > 20 {
			t.Errorf("%d definitions are read before a start that came after 10", (*readThen)[i])
		}
	}
	if called != 1 || calledThen > 20 {
		t.Errorf("%d callbacks, the last one after %d definitions, want 1 that does not wait for all of them", called, calledThen)
	}
}

func TestAStartWhoseDefinitionCannotBeReadCostsNoOther(t *testing.T) {
	x, l, batches, _ := newShelf()
	lost := map[string]int{}
	x.metrics = countLost(func() { lost["n"]++ })
	effects := l.want("a", 9, 10)
	l.errs = map[string]error{"a-002": &storage.CorruptError{Key: storage.DeploymentKey("a-002"), Err: errors.New("damaged")}}
	delete(l.deployments, "a-004") // it is not desired any more
	x.Carry(effects, nil)
	x.tickLocal(t.Context())
	delete(l.deployments, "a-002")
	if l.mustStartOnce(t, *batches); lost["n"] != 1 {
		t.Errorf("%d processes are said to be lost, want 1", lost["n"])
	}

	x, l, batches, _ = newShelf()
	x.metrics = countLost(func() { lost["ended"]++ })
	effects = l.want("a", 3, 10) // they are read as 1 and 2
	l.end = errors.New("the database is gone")
	x.Carry(effects, nil)
	x.tickLocal(t.Context())
	if got := slices.Concat(*batches...); !slices.Equal(got, []string{"a-001"}) || lost["ended"] != 2 {
		t.Errorf("%v is requested and %d processes are lost, want a-001 and 2", got, lost["ended"])
	}
}

// countLost counts effects that are lost.
type countLost func()

func (c countLost) Count(name string, _ int64, _ ...auction.Label) {
	if name == "effects_lost_total" {
		c()
	}
}
func (countLost) Gauge(string, float64, ...auction.Label)   {}
func (countLost) Observe(string, float64, ...auction.Label) {}

func TestADomainThatComesAgainAndAgainLeavesTurnsToOthers(t *testing.T) {
	var q startQueue
	start := func(domain string, process int) lrp.Effect {
		return lrp.Effect{Kind: lrp.RequestStart, Key: lrp.Key{ProcessGUID: fmt.Sprintf("%s-%d", domain, process), Domain: domain}}
	}
	for i := range 5 {
		q.add([]lrp.Effect{start("old", i)}, time.Time{})
	}
	var turns []string
	for i := range 8 {
		q.add([]lrp.Effect{start("new", i)}, time.Time{})
		list, done := q.take()
		done(time.Second)
		turns = append(turns, list[0].guid)
	}
	if want := []string{"old-0", "new-0", "old-1", "new-1", "old-2"}; !slices.Equal(turns[:5], want) {
		t.Errorf("the turns are %v, want %v and so on", turns, want)
	}
}

// A domain that has had much and comes back when it is empty has not had less than others.
func TestADomainThatComesBackKeepsWhatItHasHad(t *testing.T) {
	start := func(domain, process string) []lrp.Effect {
		return []lrp.Effect{{Kind: lrp.RequestStart, Key: lrp.Key{ProcessGUID: process, Domain: domain}}}
	}
	var q startQueue
	now := time.Unix(1_700_000_000, 0)
	for i := range 100 {
		q.add(start("patient", fmt.Sprint("p-", i)), now)
	}
	var had [2]time.Duration
	for i := range 20 {
		q.add(start("large", fmt.Sprint("l-", i)), now)
		list, done := q.take()
		took, who := 10*time.Millisecond, 0
		if strings.HasPrefix(list[0].guid, "l-") {
			took, who = time.Second, 1
		}
		had[who] += took
		done(took)
	}
	if had[1] > time.Second {
		t.Errorf("the domain with large processes has had %v of the reads, and the other one %v", had[1], had[0])
	}
}
