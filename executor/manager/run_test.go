package manager_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
)

// The same recipes, driven by goroutines and timers instead of Tick, in the
// time of a synctest bubble.
func TestRunDoesWhatTickDoes(t *testing.T) {
	for _, test := range recipes() {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				m, err := manager.New(context.Background(), manager.Options{
					Backend:  scripted.New(scripted.Options{Now: time.Now}),
					Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1},
				})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(context.Background())
				if refused := m.Reserve(manager.Reservation{GUID: "c"}); refused != nil {
					t.Fatal(refused[0].Err)
				}
				news := m.Subscribe()
				var history []string
				go func() {
					for {
						e, err := news.Next(ctx)
						if err != nil {
							return
						}
						history = append(history, fmt.Sprintf("%v %s", time.Since(begin), describe(e.Container)))
					}
				}()
				go m.Run(ctx)
				if err := m.Initialize("c", test.work); err != nil {
					t.Fatal(err)
				}
				time.Sleep(70 * time.Second) // of the bubble
				synctest.Wait()
				if got, want := strings.Join(history, "\n"), strings.Join(test.want, "\n"); got != want {
					t.Errorf("subscribers heard\n%s\nwant\n%s", got, want)
				}
				m.Delete("c")
				time.Sleep(time.Minute)
				synctest.Wait()
				if m.Remaining() != m.Total() || len(m.List()) != 0 {
					t.Errorf("%+v remains of %+v", m.Remaining(), m.Total())
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

func TestRunEndsItsJobsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		blocked := &blockingBackend{Backend: scripted.New(scripted.Options{Now: time.Now})}
		m, err := manager.New(context.Background(), manager.Options{Backend: blocked, Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		stopped := false
		go func() { m.Run(ctx); stopped = true }()
		m.Reserve(manager.Reservation{GUID: "c"})
		if err := m.Initialize("c", work(do())); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		cancel()
		synctest.Wait()
		if !stopped {
			t.Error("Run goes on")
		}
		if err := m.Clear(context.Background()); err != nil {
			t.Error(err)
		}
	})
}

// A blockingBackend makes containers until its context ends.
type blockingBackend struct{ *scripted.Backend }

func (b *blockingBackend) Create(ctx context.Context, _ executor.ContainerSpec) (executor.Endpoint, error) {
	<-ctx.Done()
	return executor.Endpoint{}, ctx.Err()
}
