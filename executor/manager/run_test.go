package manager_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/testenv"
)

// The same recipes, driven by goroutines and timers instead of Tick, in the
// time of a synctest bubble.
func TestRunDoesWhatTickDoes(t *testing.T) {
	for _, test := range recipes() {
		t.Run(test.name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
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
				if !m.Remaining().Equal(m.Total()) || len(m.List()) != 0 {
					t.Errorf("%+v remains of %+v", m.Remaining(), m.Total())
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

func TestRunEndsItsJobsWithItsContext(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
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

// A deafBackend makes the container "deaf" once it is let go, also after its context
// has ended. Others are not made, and wait for the end of their context.
type deafBackend struct {
	*scripted.Backend
	free chan struct{}
}

func (b *deafBackend) Create(ctx context.Context, spec executor.ContainerSpec) (executor.Endpoint, error) {
	if spec.GUID != "deaf" {
		<-ctx.Done()
		return executor.Endpoint{}, ctx.Err()
	}
	<-b.free
	return b.Backend.Create(ctx, spec)
}

func TestRunEndsAlthoughAJobDoesNot(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		deaf := &deafBackend{scripted.New(scripted.Options{Now: time.Now}), make(chan struct{})}
		var log strings.Builder
		m, err := manager.New(context.Background(), manager.Options{
			Backend: deaf, Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1}, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		stopped := make(chan struct{})
		go func() { m.Run(ctx); close(stopped) }()
		for _, guid := range []string{"deaf", "other"} {
			m.Reserve(manager.Reservation{GUID: guid})
			if err := m.Initialize(guid, work(do())); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		cancel()
		began := time.Now()
		select {
		case <-stopped:
			if time.Since(began) == 0 {
				t.Error("it has not waited at all")
			}
		case <-time.After(time.Minute):
			t.Error("Run goes on")
		}
		close(deaf.free)
		<-stopped
		if !strings.Contains(log.String(), "jobs=1\n") {
			t.Errorf("one job goes on; the log says %q", &log)
		}
	})
}

// A clingingBackend deletes nothing, and tries it until its context ends.
type clingingBackend struct{ *scripted.Backend }

func (clingingBackend) Delete(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

func TestAStrayThatCannotBeRemovedDoesNotKeepTheCellFromWork(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		host := clingingBackend{scripted.New(scripted.Options{Now: time.Now})}
		if _, err := host.Create(t.Context(), executor.ContainerSpec{GUID: "stray"}); err != nil {
			t.Fatal(err)
		}
		m, err := manager.New(t.Context(), manager.Options{Backend: host, Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		stopped := make(chan struct{})
		go func() { m.Run(ctx); close(stopped) }()
		select {
		case <-m.Cleared():
		case <-time.After(2 * time.Minute):
			t.Error("the Manager still waits for the first attempt to remove the stray")
		}
		cancel()
		<-stopped
	})
}

// A blockingBackend makes containers until its context ends.
type blockingBackend struct{ *scripted.Backend }

func (b *blockingBackend) Create(ctx context.Context, _ executor.ContainerSpec) (executor.Endpoint, error) {
	<-ctx.Done()
	return executor.Endpoint{}, ctx.Err()
}

func TestClearRemovesManyAtATimeAndCountsWhatIsLeft(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		backend := &slowBackend{Backend: scripted.New(scripted.Options{Now: time.Now}), stuck: map[string]error{}}
		for i := range 3 * manager.DefaultDeleteWorkers {
			if _, err := backend.Create(t.Context(), executor.ContainerSpec{GUID: fmt.Sprintf("c%03d", i)}); err != nil {
				t.Fatal(err)
			}
		}
		busy := errors.New("the mount is busy")
		backend.stuck["c007"], backend.stuck["c050"] = busy, errors.New("another reason")
		backend.stuck["c009"] = &executor.BackendError{Kind: executor.ErrSetAside, GUID: "c009"} // it is gone, but for some files
		m, err := manager.New(t.Context(), manager.Options{Backend: backend, Capacity: manager.Capacity{MemoryMB: 1, DiskMB: 1}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = m.Clear(t.Context())
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("it took %v, want the time of three deletions", took)
		}
		var left *manager.LeftError
		if !errors.As(err, &left) || left.Containers != 2 || !errors.Is(err, busy) {
			t.Errorf("it says %v", err)
		}
		backend.stuck = nil
		if err := m.Clear(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A slowBackend takes a second for each deletion, and fails for those that are
// stuck.
type slowBackend struct {
	*scripted.Backend
	stuck map[string]error
}

func (b *slowBackend) Delete(ctx context.Context, guid string) error {
	time.Sleep(time.Second) // of the bubble
	if err := b.stuck[guid]; err != nil {
		return err
	}
	return b.Backend.Delete(ctx, guid)
}
