package localcell_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/storage"
)

// slow is a BBS that answers once it is told to, and counts who asks.
type slow struct {
	rep.BBS
	asked  atomic.Int64
	answer chan struct{}
}

func (s *slow) Deployments(ctx context.Context, _ storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	return func(yield func(*lrp.Deployment, error) bool) {
		s.asked.Add(1)
		select {
		case <-s.answer:
		case <-ctx.Done():
		}
		yield(nil, context.Canceled)
	}
}

func TestReadersOfLogsAskTheBBSForFewOfThemAtATime(t *testing.T) {
	for _, test := range []struct {
		containers int
		calls      int64
	}{{1, 1}, {10, 10}, {40, 16}} {
		t.Run(fmt.Sprint(test.containers, " containers"), func(t *testing.T) {
			m, err := manager.New(t.Context(), manager.Options{Dir: t.TempDir(), Backend: scripted.New(scripted.Options{}), Capacity: executor.Capacity{MemoryMB: 640, DiskMB: 640, Containers: 100}})
			if err != nil {
				t.Fatal(err)
			}
			b := &slow{answer: make(chan struct{})}
			cell, err := localcell.New(m, rep.Options{CellID: "cell-1", BBS: b})
			if err != nil {
				t.Fatal(err)
			}
			for n := range test.containers {
				guid := fmt.Sprint("g", n)
				tags := map[string]string{executor.TagLifecycle: executor.LifecycleLRP, executor.TagProcessGUID: "web", executor.TagProcessIndex: fmt.Sprint(n), executor.TagDomain: "apps"}
				if refused := m.Reserve(executor.Reservation{GUID: guid, Resources: executor.Resources{MemoryMB: 8, DiskMB: 8}, Tags: tags}); len(refused) > 0 {
					t.Fatal(refused)
				}
				if err := m.Initialize(guid, executor.Work{RunInfo: executor.RunInfo{RootFS: "host:", Action: executor.Action{Run: &executor.RunAction{Path: "x", User: "u"}}}}); err != nil {
					t.Fatal(err)
				}
			}
			m.Tick(t.Context()) // makes their logs
			var reading sync.WaitGroup
			for n := range 200 {
				reading.Go(func() {
					for _, err := range cell.Logs(t.Context(), rep.LogRequest{ContainerGUID: fmt.Sprint("g", n%test.containers)}) {
						if err != nil {
							t.Error(err)
						}
					}
				})
			}
			for end := time.Now().Add(30 * time.Second); b.asked.Load() < test.calls && time.Now().Before(end); time.Sleep(time.Millisecond) {
			}
			time.Sleep(100 * time.Millisecond) // for more
			if n := b.asked.Load(); n != test.calls {
				t.Errorf("200 readers made %d calls, want %d", n, test.calls)
			}
			close(b.answer)
			reading.Wait()
		})
	}
}

func TestACellThatNewHasNotMadeServesLogs(t *testing.T) {
	m, err := manager.New(t.Context(), manager.Options{Dir: t.TempDir(), Backend: scripted.New(scripted.Options{}), Capacity: executor.Capacity{MemoryMB: 64, DiskMB: 64}})
	if err != nil {
		t.Fatal(err)
	}
	if refused := m.Reserve(executor.Reservation{GUID: "g", Resources: executor.Resources{MemoryMB: 8, DiskMB: 8}, Tags: map[string]string{
		executor.TagLifecycle: executor.LifecycleLRP, executor.TagProcessGUID: "web", executor.TagProcessIndex: "0", executor.TagDomain: "apps",
	}}); len(refused) > 0 {
		t.Fatal(refused)
	}
	if err := m.Initialize("g", executor.Work{RunInfo: executor.RunInfo{RootFS: "host:", Action: executor.Action{Run: &executor.RunAction{Path: "x", User: "u"}}}}); err != nil {
		t.Fatal(err)
	}
	m.Tick(t.Context()) // makes its log
	cell := &localcell.Cell{Manager: m}
	for _, err := range cell.Logs(t.Context(), rep.LogRequest{ContainerGUID: "g"}) {
		if err != nil {
			t.Error(err)
		}
	}
}

func TestALogIsReadInSmallPieces(t *testing.T) {
	b := scripted.New(scripted.Options{})
	m, err := manager.New(t.Context(), manager.Options{Dir: t.TempDir(), Backend: b, Capacity: executor.Capacity{MemoryMB: 64, DiskMB: 64}})
	if err != nil {
		t.Fatal(err)
	}
	if refused := m.Reserve(executor.Reservation{GUID: "g", Resources: executor.Resources{MemoryMB: 8, DiskMB: 8}}); len(refused) > 0 {
		t.Fatal(refused)
	}
	const text = 100_000
	if err := m.Initialize("g", executor.Work{RunInfo: executor.RunInfo{RootFS: "host:", Action: executor.Action{
		Run: &executor.RunAction{Path: scripted.Path, Args: []string{"print " + strings.Repeat("x", text)}, User: "u"}}}}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	var working sync.WaitGroup
	defer working.Wait()
	defer cancel()
	m.Tick(ctx) // makes the log
	working.Go(func() {
		for ctx.Err() == nil {
			m.Tick(ctx)
			if due, ok := b.Next(); ok {
				b.Step(due)
			}
		}
	})
	cell, read := &localcell.Cell{Manager: m}, 0
	for chunk, err := range cell.Logs(ctx, rep.LogRequest{ContainerGUID: "g", Follow: true}) {
		if err != nil {
			t.Fatalf("after %d bytes: %v", read, err)
		}
		if len(chunk.Data) > 8<<10 {
			t.Errorf("a piece has %d bytes", len(chunk.Data))
		}
		if read += len(chunk.Data); read >= text {
			return
		}
	}
	t.Errorf("the log ends after %d bytes", read)
}
