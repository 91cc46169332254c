package system_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// A system is a control plane and its cells in virtual time.
//
// Its BBS is that of the control plane, or a client of it over HTTP: see
// [TestTheSameHoldsOverHTTP].
type system struct {
	*diego.ControlPlane
	BBS   bbs.API
	t     *testing.T
	ctx   context.Context
	clock *memcell.Clock
	store *memstore.Store
	cells memcell.Fleet
}

// newSystem makes one that leads and whose cells are known. change may change
// its options.
func newSystem(t *testing.T, cells int, change func(*diego.Options)) *system {
	t.Helper()
	s := &system{t: t, ctx: t.Context(), clock: memcell.NewClock()}
	s.store = memstore.New(&memstore.Options{Now: s.clock.Now})
	s.cells = memcell.NewFleet(cells, s.clock)
	s.ControlPlane = s.plane("plane-1", change)
	s.BBS = s.asked(s.ControlPlane)
	s.cells.ReportTo(s.BBS)
	s.step()
	return s
}

// plane makes another control plane over the same store and cells.
func (s *system) plane(owner string, change func(*diego.Options)) *diego.ControlPlane {
	s.t.Helper()
	o := diego.Options{
		Store: s.store, Dial: s.cells.Dial, Owner: owner, Now: s.clock.Now, Concurrency: 1,
		Guard:         converge.Guard{Grace: -1},
		CallbackAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, // where receivers are
	}
	if change != nil {
		change(&o)
	}
	p, err := diego.New(o)
	if err != nil {
		s.t.Fatal(err)
	}
	return p
}

// step lets everybody do once what is due, and expects all of it to work.
func (s *system) step() {
	s.t.Helper()
	s.must(s.cells.Announce(s.ctx, s.store))
	s.must(s.Tick(s.ctx))
	s.cells.Step(s.ctx)
}

func (s *system) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// pass lets time pass, in steps of a second.
func (s *system) pass(d time.Duration) {
	s.t.Helper()
	for range int(d / time.Second) {
		s.clock.Advance(time.Second)
		s.step()
	}
}

func desired(guid string, instances int) lrp.DesiredLRP {
	return lrp.DesiredLRP{
		ProcessGUID: guid, Domain: "apps", Settings: lrp.Settings{Instances: instances}, Definition: definition(),
	}
}

func definition() lrp.Definition {
	return lrp.Definition{RunInfo: executor.RunInfo{
		RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}},
	}}
}

func desiredTask(guid, callback string) task.Desire {
	d := definition()
	return task.Desire{GUID: guid, Domain: "apps", Definition: task.Definition{RunInfo: d.RunInfo, CompletionCallbackURL: callback}}
}

// records are such as "web/0 RUNNING SUSPECT cell-1".
func (s *system) records() (list []string) {
	s.t.Helper()
	for r, err := range s.store.ActualLRPs(s.ctx, storage.ActualLRPFilter{}) {
		s.must(err)
		list = append(list, describe(&r))
	}
	return list
}

func describe(r *lrp.ActualLRP) string {
	return strings.TrimSpace(fmt.Sprintf("%s/%d %s %s %s", r.ProcessGUID, r.Index, r.State, r.Presence, r.CellID))
}

func (s *system) wantRecords(want ...string) {
	s.t.Helper()
	if got := s.records(); !slices.Equal(got, want) {
		s.t.Errorf("got records\n\t%s\nwant\n\t%s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// instances are the instance guids of all RUNNING records.
func (s *system) instances() (list []string) {
	s.t.Helper()
	for r, err := range s.store.ActualLRPs(s.ctx, storage.ActualLRPFilter{States: []lrp.State{lrp.Running}}) {
		s.must(err)
		list = append(list, r.InstanceGUID)
	}
	return list
}

// containers counts those of all cells.
func (s *system) containers() (n int) {
	for _, c := range s.cells {
		list, err := c.Containers(s.ctx)
		s.must(err)
		n += len(list)
	}
	return n
}

func (s *system) task(guid string) *task.Task {
	s.t.Helper()
	t, err := s.BBS.Task(s.ctx, guid)
	s.must(err)
	return t
}

// record is the only one at an index.
func (s *system) record(guid string, index int) lrp.ActualLRP {
	s.t.Helper()
	slot, err := s.BBS.Slot(s.ctx, guid, index)
	s.must(err)
	if len(slot.Records) != 1 {
		s.t.Fatalf("%s/%d has %d records, want one", guid, index, len(slot.Records))
	}
	return slot.Records[0]
}
