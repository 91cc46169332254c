package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
)

// An immortalBackend has processes that nothing ends.
type immortalBackend struct{ *scripted.Backend }

type immortal struct{}

func (immortal) Signal(executor.Signal) error { return errors.New("it does not hear") }

func (b *immortalBackend) Start(context.Context, string, executor.ProcessSpec) (executor.Process, error) {
	return immortal{}, nil
}

func (b *immortalBackend) Signal(context.Context, string, executor.Signal) error {
	return errors.New("they do not hear")
}

func TestAProcessThatDoesNotDieHoldsNothingUp(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.Backend = &immortalBackend{o.Backend.(*scripted.Backend)} })
	c.launch("c", work(do()))
	c.advance(time.Second)
	c.stop("c")
	c.advance(time.Minute)
	c.mustTell("0s RUNNING", "12s COMPLETED stopped") // TERM at 1s, KILL at 11s
	c.Delete("c")
	c.advance(0)
	c.mustBeClean()
}

// A silentBackend accepts connections and never answers.
type silentBackend struct{ *scripted.Backend }

func (b *silentBackend) Dial(context.Context, string, uint16) (io.ReadWriteCloser, error) {
	here, there := net.Pipe()
	go io.Copy(io.Discard, there)
	return here, nil
}

func TestAnHTTPCheckIsBoundedAsAWhole(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.Backend = &silentBackend{o.Backend.(*scripted.Backend)} })
	c.launch("c", with(work(do("wait forever")), func(w *manager.Work) {
		w.Check = &executor.CheckDefinition{Checks: []executor.Check{{HTTP: &executor.HTTPCheck{Port: 80, Path: "/health", RequestTimeoutMs: 5}}}}
		w.StartTimeoutMs = 1000
	}))
	c.advance(10 * time.Second)
	c.mustTell("1s COMPLETED failed: instance was never healthy within 1s: HTTP check of port 80/health: context deadline exceeded")
}

func TestABackendThatReturnsNoAddressesFailsTheCreation(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.Backend = &lostBackend{o.Backend.(*scripted.Backend)} })
	c.launch("c", work(do()))
	c.advance(0)
	if got, _ := c.Get("c"); !got.RunResult.Retryable || !strings.Contains(got.RunResult.FailureReason, "external_ip") {
		t.Errorf("the container is %s", describe(got))
	}
	c.Delete("c")
	c.advance(0)
	c.mustBeClean()
}

// A lostBackend does not know where its containers are.
type lostBackend struct{ *scripted.Backend }

func (b *lostBackend) Create(ctx context.Context, spec executor.ContainerSpec) (executor.Endpoint, error) {
	e, err := b.Backend.Create(ctx, spec)
	e.ExternalIP = "somewhere"
	return e, err
}

func TestUsageAndFilesAreOfContainersThatExist(t *testing.T) {
	c := newCell(t)
	ctx := context.Background()
	if c.Host().Backend != "scripted" {
		t.Errorf("the host is %+v", c.Host())
	}
	if _, err := c.Usage(ctx, "c"); !errors.Is(err, manager.ErrNotFound) {
		t.Errorf("metrics of nobody: %v", err)
	}
	if _, err := c.ReadFile(ctx, "c", "f"); !errors.Is(err, manager.ErrNotFound) {
		t.Errorf("a file of nobody: %v", err)
	}
	c.reserve("c")
	if _, err := c.ReadFile(ctx, "c", "f"); !errors.Is(err, executor.ErrNoContainer) {
		t.Errorf("a file of a reservation: %v", err)
	}
	if refused := c.Reserve(reservation("c", 1, 1, 1)); len(refused) != 1 || !errors.Is(refused[0].Err, manager.ErrExists) {
		t.Errorf("refused: %v", reasons(refused))
	}
	if refused := c.Reserve(reservation("d", 1<<30, 1, 1)); len(refused) != 1 || !errors.Is(refused[0].Err, manager.ErrCapacity) {
		t.Errorf("refused: %v", reasons(refused))
	}
	if err := c.Initialize("c", work(do("write f content", "wait forever"))); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Second)
	if m, err := c.Usage(ctx, "c"); err != nil || m.PIDs != 1 {
		t.Errorf("%+v, %v", m, err)
	}
	if text, err := c.ReadFile(ctx, "c", "/f"); err != nil || string(text) != "content" {
		t.Errorf("%q, %v", text, err)
	}
}

func TestWithoutADirectoryTransfersFailAndEverythingElseWorks(t *testing.T) {
	c := newCell(t)
	c.launch("download", work(executor.Action{Download: &executor.DownloadAction{From: "http://example.com/a", To: "/a", User: "app"}}))
	c.launch("upload", work(executor.Action{Upload: &executor.UploadAction{From: "/a", To: "http://example.com/a", User: "app"}}))
	c.advance(time.Second)
	for _, x := range c.List() {
		if !strings.HasSuffix(x.RunResult.FailureReason, "set Options.Dir of the manager") {
			t.Errorf("%s is %s", x.GUID, describe(x))
		}
	}
}

// A stickyBackend deletes containers but for some files of theirs.
type stickyBackend struct {
	*scripted.Backend
	left []executor.Leftover
}

func (b *stickyBackend) Delete(ctx context.Context, guid string) error {
	if err := b.Backend.Delete(ctx, guid); err != nil {
		return err
	}
	b.left = append(b.left, executor.Leftover{Path: "/lost/" + guid, Bytes: 3<<20 - 1, Err: errors.New("busy")})
	return &executor.BackendError{Kind: executor.ErrSetAside, GUID: guid}
}

func (b *stickyBackend) Sweep(context.Context) ([]executor.Leftover, error) { return b.left, nil }

func TestTheDiskOfWhatWasSetAsideIsNotPromised(t *testing.T) {
	var sticky *stickyBackend
	var log strings.Builder
	c := newCell(t, func(o *manager.Options) {
		sticky = &stickyBackend{Backend: o.Backend.(*scripted.Backend)}
		o.Backend, o.Logger = sticky, slog.New(slog.NewTextHandler(&log, nil))
	})
	for _, guid := range []string{"a", "b"} {
		c.launch(guid, work(do()))
		c.advance(time.Second)
		c.Delete(guid)
		c.advance(time.Second)
	}
	if list := c.List(); len(list) != 0 {
		t.Errorf("left are %v", list)
	}
	lacking := func(want int64) {
		t.Helper()
		now := c.Remaining()
		if left := c.Total(); now.DiskMB != left.DiskMB-want || now.MemoryMB != left.MemoryMB || now.Containers != left.Containers {
			t.Errorf("remaining is %+v of %+v, want %d MiB of disk less", now, left, want)
		}
	}
	lacking(6)
	c.advance(10 * time.Minute)
	if all := c.Leftovers(); len(all) != 2 || all[1].Path != "/lost/b" {
		t.Errorf("the leftovers are %v", all)
	}
	if n := strings.Count(log.String(), "path=/lost/"); n != 2 {
		t.Errorf("the log names them %d times: %s", n, log.String())
	}
	sticky.left = sticky.left[1:]
	c.advance(time.Minute)
	lacking(3)
	sticky.left = nil
	c.advance(time.Minute)
	lacking(0)
	sticky.left = []executor.Leftover{{Path: "/lost/huge", Bytes: 1 << 60}}
	c.advance(time.Minute)
	if got := c.Remaining().DiskMB; got != 0 {
		t.Errorf("%d MiB of disk remain beside a file that is larger than the disk", got)
	}
}

// A tenant who holds up what is done for his own containers holds up nobody else:
// he stops each child before it is its program, answers no probe, or has a server
// that never comes to an end.
func TestContainersWhoseJobsDoNotEndHoldUpNoOther(t *testing.T) {
	checks := func(n int) *executor.CheckDefinition {
		return &executor.CheckDefinition{Checks: slices.Repeat([]executor.Check{{TCP: &executor.TCPCheck{Port: 8080}}}, n)}
	}
	// Without a directory a transfer that has its turn fails.
	download := executor.Action{Download: &executor.DownloadAction{From: "http://example.com/a", To: "/a", User: "app"}}
	upload := executor.Action{Upload: &executor.UploadAction{From: "/a", To: "http://example.com/a", User: "app"}}
	many := func(a executor.Action) manager.Work {
		return work(parallel(slices.Repeat([]executor.Action{a}, 200)...))
	}
	for kind, test := range map[manager.JobKind]struct {
		hostile, neighbour manager.Work
		want               executor.State
	}{
		manager.JobCreate: {work(do("wait forever")), work(do("wait forever")), executor.Running},
		manager.JobFetch: {
			with(work(do("wait forever")), func(w *manager.Work) {
				w.ImageLayers = []executor.ImageLayer{{URL: "http://example.com/a", DestinationPath: "/a", MediaType: executor.MediaTypeTGZ, LayerType: executor.LayerShared}}
			}),
			work(do("wait forever")), executor.Running,
		},
		manager.JobStart: {many(do("wait forever")), work(do("wait forever")), executor.Running},
		manager.JobProbe: {
			with(work(do("wait forever")), func(w *manager.Work) { w.Check, w.Ports = checks(executor.MaxChecks), []uint16{8080} }),
			with(work(do("serve 8080 200", "wait forever")), func(w *manager.Work) { w.Check, w.Ports = checks(1), []uint16{8080} }),
			executor.Running,
		},
		manager.JobDownload: {many(download), work(download), executor.Completed},
		manager.JobUpload:   {many(upload), work(upload), executor.Completed},
	} {
		for _, among := range []struct {
			containers    int
			hostile, good string // domains
			within        time.Duration
		}{{1, "", "", 2 * time.Minute}, {8, "", "", 2 * time.Minute}, {40, "hostile", "", time.Second}, {40, "", "good", time.Second}} {
			t.Run(fmt.Sprintf("%s, %+v", kind, among), func(t *testing.T) {
				c := newCell(t, func(o *manager.Options) {
					o.CreateWorkers, o.DefaultMaxPIDs = 4, 10
					o.Capacity = manager.Capacity{MemoryMB: 1 << 20, DiskMB: 1 << 20, Containers: int64(among.containers) + 1}
					o.Delay = func(j manager.Job) time.Duration {
						if j.GUID != "neighbour" && j.Kind == kind {
							return time.Hour
						}
						return 0
					}
				})
				for i := range among.containers {
					c.launchFor(among.hostile, fmt.Sprint("hostile-", i), test.hostile)
				}
				c.advance(time.Second)
				c.launchFor(among.good, "neighbour", test.neighbour)
				c.advance(among.within)
				if got, ok := c.Get("neighbour"); !ok || got.State != test.want {
					t.Errorf("it is %v", got.State)
				}
			})
		}
	}
}

// A tenant whose jobs take no longer than a turn keeps their places. So those who share a
// pool take turns, however many jobs each of them has.
func TestContainersWithManyJobsKeepNoOtherWaitingUntilAllAreDone(t *testing.T) {
	const tenants, each, turn = 40, 30, time.Second
	checks := func(n int) *executor.CheckDefinition {
		return &executor.CheckDefinition{Checks: slices.Repeat([]executor.Check{{TCP: &executor.TCPCheck{Port: 8080}}}, n)}
	}
	c := newCell(t, func(o *manager.Options) {
		o.Capacity, o.DefaultMaxPIDs = manager.Capacity{MemoryMB: 1 << 20, DiskMB: 1 << 20, Containers: tenants + 1}, 10
		o.Delay = func(j manager.Job) time.Duration {
			if j.GUID != "neighbour" && j.Kind == manager.JobProbe {
				return turn
			}
			return 0
		}
	})
	for i := range tenants {
		c.launch(fmt.Sprint("hostile-", i), with(work(do("wait forever")), func(w *manager.Work) { w.Check, w.Ports = checks(each), []uint16{8080} }))
	}
	c.advance(5 * turn)
	c.launch("neighbour", with(work(do("serve 8080 200", "wait forever")), func(w *manager.Work) { w.Check, w.Ports = checks(1), []uint16{8080} }))
	c.advance(2 * turn)
	if got, ok := c.Get("neighbour"); !ok || got.State != executor.Running {
		t.Errorf("it is %v", got.State)
	}
}

// What runs on a file system of a tenant's own server, such as a volume, does not die
// while that server does not answer.
func TestContainersThatCannotBeRemovedHoldUpNoOther(t *testing.T) {
	c := newCell(t, func(o *manager.Options) {
		o.DeleteWorkers, o.DefaultMaxPIDs = 2, 10
		o.Delay = func(j manager.Job) time.Duration {
			if j.Kind == manager.JobDelete && j.GUID != "neighbour" {
				return time.Hour
			}
			return 0
		}
	})
	for _, guid := range []string{"hostile-1", "hostile-2", "hostile-3", "hostile-4", "neighbour"} {
		c.launch(guid, work(do("wait forever")))
		c.advance(time.Second)
		c.Delete(guid)
	}
	c.advance(5 * time.Minute)
	if got, there := c.Get("neighbour"); there {
		t.Errorf("it is %v and still there", got.State)
	}
	if n := len(c.List()); n != 4 {
		t.Errorf("there are %d containers", n)
	}
}

// An unlistedBackend cannot list its containers, because the socket of its runtime is gone.
type unlistedBackend struct{ *scripted.Backend }

func (unlistedBackend) List(context.Context) ([]string, error) {
	return nil, &fs.PathError{Op: "connect", Path: "/run/runtime.sock", Err: fs.ErrNotExist}
}

func TestTheEndDeletesItsContainersAlsoIfTheyCannotBeListed(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.Backend = unlistedBackend{o.Backend.(*scripted.Backend)} })
	c.launch("c", work(do("wait forever")))
	c.reserve("reserved")
	c.advance(time.Second)
	if err := c.Clear(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it does not say that others may be left: %v", err)
	}
	if left, err := c.backend.List(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
}

// A streamer counts how often files are asked for.
type streamer struct {
	*scripted.Backend
	asked int
}

func (b *streamer) StreamOut(ctx context.Context, guid, path, user string) (io.ReadCloser, error) {
	b.asked++
	return b.Backend.StreamOut(ctx, guid, path, user)
}

func TestWhatIsStoppedWhileItWaitsForAPlaceDoesNotBegin(t *testing.T) {
	var b streamer
	c := newCell(t, func(o *manager.Options) {
		b.Backend = o.Backend.(*scripted.Backend)
		o.Backend, o.Dir = &b, t.TempDir()
	})
	c.delays[manager.JobUpload], c.delays[manager.JobProbe] = time.Hour, time.Hour
	upload := executor.Action{Upload: &executor.UploadAction{From: "/file", To: "http://192.0.2.1/", User: "app"}}
	c.launch("c", with(work(parallel(slices.Repeat([]executor.Action{upload}, 500)...)), func(w *manager.Work) {
		w.Check = &executor.CheckDefinition{Checks: slices.Repeat([]executor.Check{{TCP: &executor.TCPCheck{Port: 8080}}}, executor.MaxChecks)}
		w.Ports = []uint16{8080}
	}))
	c.advance(time.Second)
	c.stop("c")
	c.advance(time.Second)
	c.mustTell("1s COMPLETED stopped")
	if b.asked != 0 {
		t.Errorf("%d uploads have begun", b.asked)
	}
	log, err := c.Log(t.Context(), "c", manager.Health, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	if text, err := io.ReadAll(log); err != nil || len(text) > 0 {
		t.Errorf("the log of health says %q, %v", text, err)
	}
}
