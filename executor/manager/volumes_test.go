package manager_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/internal/testenv"
)

// A shelf is a volume driver that knows what is mounted. Its fields may be
// changed between two calls.
type shelf struct {
	mu       sync.Mutex
	mounted  map[string]bool // guid and id
	calls    []string
	mountErr map[string]error // by id
	busy     int              // how many Unmounts fail
	probeErr error
	hang     chan struct{} // calls wait for its end, and ignore their context
}

func newShelf() *shelf { return &shelf{mounted: map[string]bool{}} }

func (s *shelf) enter(call, guid string, v executor.VolumeMount) string {
	s.mu.Lock()
	id := idOf(v)
	s.calls = append(s.calls, call+" "+id)
	hang := s.hang
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return guid + " " + id
}

func (s *shelf) Mount(_ context.Context, guid string, v executor.VolumeMount) (string, error) {
	key := s.enter("mount", guid, v)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mounted[key] = true // a failure may leave something
	return "/volumes/" + idOf(v), s.mountErr[idOf(v)]
}

func (s *shelf) Unmount(_ context.Context, guid string, v executor.VolumeMount) error {
	key := s.enter("unmount", guid, v)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy > 0 {
		s.busy--
		return errors.New("device busy")
	}
	delete(s.mounted, key)
	return nil
}

func (s *shelf) Probe(context.Context) error { return s.probeErr }

func (s *shelf) mustHave(t *testing.T, mounted int, calls ...string) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mounted) != mounted || !slices.Equal(s.calls, calls) {
		t.Errorf("mounted are %v after the calls %q, want %d after %q", s.mounted, s.calls, mounted, calls)
	}
}

func idOf(v executor.VolumeMount) string {
	if v.Shared != nil {
		return v.Shared.VolumeID
	}
	return v.Dedicated.MounterID
}

func sharedVolume(driver, id string) executor.VolumeMount {
	return executor.VolumeMount{Driver: driver, ContainerDir: "/" + id, Mode: executor.MountReadWrite, Shared: &executor.SharedDevice{VolumeID: id, MountConfig: "{}"}}
}

func dedicatedVolume(driver, id string) executor.VolumeMount {
	return executor.VolumeMount{Driver: driver, ContainerDir: "/" + id, Mode: executor.MountReadWrite, Dedicated: &executor.DedicatedDevice{MounterID: id}}
}

func withVolumes(list ...executor.VolumeMount) manager.Work {
	return with(work(do("wait forever")), func(w *manager.Work) { w.VolumeMounts = list })
}

// shelved is a cell with a directory and drivers.
func shelved(t *testing.T, dir string, drivers map[string]manager.VolumeDriver, edit ...func(*manager.Options)) *cell {
	return newCell(t, append(edit, func(o *manager.Options) { o.Dir, o.Volumes = dir, drivers })...)
}

func records(t *testing.T, dir string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "volumes", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestVolumesAreMountedAndUnmountedOnce(t *testing.T) {
	dir, driver := t.TempDir(), newShelf()
	c := shelved(t, dir, map[string]manager.VolumeDriver{"local": driver})
	c.launch("c", withVolumes(dedicatedVolume("local", "a"), sharedVolume("local", "b")))
	c.advance(time.Second)
	c.mustTell("0s RUNNING")
	driver.mustHave(t, 2, "mount a", "mount b")
	if got := records(t, dir); len(got) != 1 {
		t.Errorf("the records are %q", got)
	} else if info, err := os.Stat(got[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the record, which may hold secrets, is %v, %v", info, err)
	}
	c.Delete("c")
	c.advance(time.Second)
	driver.mustHave(t, 0, "mount a", "mount b", "unmount b", "unmount a")
	c.mustBeClean()
	if got := records(t, dir); len(got) != 0 {
		t.Errorf("the records are %q", got)
	}
}

func TestAnUnmountThatFailsIsTriedAgainAndHoldsUpNothingElse(t *testing.T) {
	driver := newShelf()
	driver.busy = 3
	c := shelved(t, t.TempDir(), map[string]manager.VolumeDriver{"local": driver})
	c.launch("c", withVolumes(dedicatedVolume("local", "a"), sharedVolume("local", "b")))
	c.advance(time.Second)
	c.Delete("c")
	c.advance(0)
	c.mustBeClean() // the container and its resources are gone
	left := c.Volumes()
	if n := c.WaitingUnmounts(); n != len(left) {
		t.Errorf("%d volumes wait, want %d", n, len(left))
	}
	if len(left) != 2 || left[0].Attempts != 1 || left[0].Err == nil || !strings.Contains(left[0].Err.Error(), `the volume driver "local" cannot unmount it: device busy`) {
		t.Errorf("left are %v", left)
	}
	if refused := c.Reserve(manager.Reservation{GUID: "c", Resources: executor.Resources{MemoryMB: 1}}); len(refused) != 1 {
		t.Error("the guid is in use again before its volumes are unmounted")
	}
	c.launch("d", withVolumes(dedicatedVolume("local", "a")))
	c.advance(0)
	if d, _ := c.Get("d"); !strings.Contains(describe(d), `container "c" has it`) {
		t.Errorf("a dedicated volume that is still mounted: %s", describe(d))
	}
	c.Delete("d")
	c.advance(10 * time.Second)
	driver.mustHave(t, 0, "mount a", "mount b", "unmount b", "unmount a", "unmount b", "unmount a", "unmount b")
	if left := c.Volumes(); len(left) != 0 || c.WaitingUnmounts() != 0 {
		t.Errorf("left are %v", left)
	}
	c.mustBeClean()
}

func TestVolumesOfAContainerThatCannotBeMadeAreUnmounted(t *testing.T) {
	driver := newShelf()
	driver.mountErr = map[string]error{"b": errors.New("no route to the server")}
	c := shelved(t, t.TempDir(), map[string]manager.VolumeDriver{"local": driver})
	c.launch("c", withVolumes(sharedVolume("local", "a"), sharedVolume("local", "b"), sharedVolume("local", "c")))
	c.advance(0)
	c.mustTell(`0s COMPLETED never began: failed to create the container: volume for /b: the volume driver "local" cannot mount it: no route to the server`)
	c.Delete("c")
	c.advance(0)
	driver.mustHave(t, 0, "mount a", "mount b", "unmount b", "unmount a") // c was never asked for
	c.mustBeClean()
}

func TestVolumesThatCannotBeHadAreRefusedByName(t *testing.T) {
	same := sharedVolume("local", "a")
	for name, test := range map[string]struct {
		mounts []executor.VolumeMount
		want   string
	}{
		"no such driver":               {[]executor.VolumeMount{sharedVolume("nfs", "a")}, `volume a of the driver "nfs" for /a: this cell has no such driver; it has ["local"]`},
		"twice in one place":           {[]executor.VolumeMount{same, same}, "it is there twice; name it once"},
		"another has it alone":         {[]executor.VolumeMount{dedicatedVolume("local", "alone")}, `container "first" has it, and a dedicated volume is for one container at a time`},
		"one wants it alone":           {[]executor.VolumeMount{dedicatedVolume("local", "shared")}, `container "first" has it`},
		"shared, but one has it alone": {[]executor.VolumeMount{sharedVolume("local", "alone")}, `container "first" has it`},
	} {
		t.Run(name, func(t *testing.T) {
			driver := newShelf()
			c := shelved(t, t.TempDir(), map[string]manager.VolumeDriver{"local": driver})
			c.launch("first", withVolumes(sharedVolume("local", "shared"), dedicatedVolume("local", "alone")))
			c.launch("c", withVolumes(test.mounts...))
			c.launch("other", withVolumes(sharedVolume("local", "shared")))
			c.advance(0)
			if got, _ := c.Get("c"); !strings.Contains(describe(got), test.want) {
				t.Errorf("it is %s, want %s", describe(got), test.want)
			}
			if got, _ := c.Get("other"); got.State != executor.Running {
				t.Errorf("one that shares a volume is %s", describe(got))
			}
			for _, guid := range []string{"first", "c", "other"} {
				c.Delete(guid)
			}
			c.advance(time.Minute)
			c.mustBeClean()
			if left := c.Volumes(); len(left) != 0 {
				t.Errorf("left are %v", left)
			}
		})
	}
}

// A driver may ignore its context, because it waits for the kernel.
func TestADriverThatHangsHoldsUpNobodyElse(t *testing.T) {
	testenv.Bubble(t, driverThatHangs) // whose time ends calls only while all of them hang
}

func driverThatHangs(t *testing.T) {
	stuck, sound := newShelf(), newShelf()
	stuck.hang = make(chan struct{})
	dir := t.TempDir()
	c := shelved(t, dir, map[string]manager.VolumeDriver{"stuck": stuck, "sound": sound}, func(o *manager.Options) {
		o.Capacity.Containers, o.Capacity.PIDs = 40, 0
	})
	if got := c.VolumeDrivers(); !slices.Equal(got, []string{"sound", "stuck"}) {
		t.Errorf("the drivers are %q", got)
	}
	for i := range 20 {
		guid := fmt.Sprint("stuck-", i)
		for _, r := range c.Reserve(manager.Reservation{GUID: guid, Resources: executor.Resources{MemoryMB: 1}}) {
			t.Fatal(r.Err)
		}
		if err := c.Initialize(guid, withVolumes(sharedVolume("stuck", fmt.Sprint(i)))); err != nil {
			t.Fatal(err)
		}
	}
	c.launch("sound", withVolumes(sharedVolume("sound", "a")))
	c.advance(time.Second)
	if got, _ := c.Get("sound"); got.State != executor.Running {
		t.Errorf("the container with the other driver is %s", describe(got))
	}
	for i, want := range []string{"has not answered", "8 calls hang"} {
		if got, _ := c.Get(fmt.Sprint("stuck-", i*19)); !strings.Contains(describe(got), want) {
			t.Errorf("it is %s, want %q", describe(got), want)
		}
	}
	if got := c.VolumeDrivers(); !slices.Equal(got, []string{"sound"}) {
		t.Errorf("the drivers are %q", got)
	}
	for i := range 20 {
		c.Delete(fmt.Sprint("stuck-", i))
	}
	c.Delete("sound")
	c.advance(time.Second)
	c.mustBeClean()

	// It comes back: what was mounted late is unmounted, and only then.
	stuck.mu.Lock()
	close(stuck.hang)
	stuck.hang = nil
	stuck.mu.Unlock()
	for len(c.Volumes()) > 0 || len(c.VolumeDrivers()) < 2 {
		c.advance(time.Minute)
	}
	stuck.mu.Lock()
	defer stuck.mu.Unlock()
	if len(stuck.mounted) != 0 || len(records(t, dir)) != 0 {
		t.Errorf("still mounted are %v, the records %q", stuck.mounted, records(t, dir))
	}
}

func TestAContainerDeletedWhileItsVolumeIsBeingMountedLeavesNothing(t *testing.T) {
	driver := newShelf()
	driver.hang = make(chan struct{})
	m, err := manager.New(t.Context(), manager.Options{
		Backend: newCell(t).backend, Dir: t.TempDir(), Volumes: map[string]manager.VolumeDriver{"local": driver},
		Capacity: manager.Capacity{MemoryMB: 1000, DiskMB: 1000},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { m.Run(ctx) })
	defer running.Wait()
	defer cancel()
	until := func(what string, f func() bool) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); !f(); time.Sleep(time.Millisecond) { // between two looks
			if time.Now().After(deadline) {
				t.Fatalf("it has not happened that %s", what)
			}
		}
	}
	m.Reserve(manager.Reservation{GUID: "c", Resources: executor.Resources{MemoryMB: 1}})
	if err := m.Initialize("c", withVolumes(sharedVolume("local", "a"))); err != nil {
		t.Fatal(err)
	}
	until("it is being mounted", func() bool { driver.mu.Lock(); defer driver.mu.Unlock(); return len(driver.calls) == 1 })
	m.Delete("c")
	until("its mount is given up", func() bool { return len(m.VolumeDrivers()) == 0 })
	driver.mustHave(t, 0, "mount a") // an unmount at this moment would come too early
	close(driver.hang)
	until("it is gone", func() bool { return len(m.List()) == 0 && len(m.Volumes()) == 0 })
	driver.mustHave(t, 0, "mount a", "unmount a")
}

func TestTheNextDaemonUnmountsWhatAKilledOneHadMounted(t *testing.T) {
	for name, guids := range map[string][]string{
		"with its containers":                     {"c"},
		"whose containers have left nothing else": nil,
	} {
		t.Run(name, func(t *testing.T) {
			dir, driver := t.TempDir(), newShelf()
			drivers := map[string]manager.VolumeDriver{"local": driver}
			first := shelved(t, dir, drivers)
			first.launch("c", withVolumes(dedicatedVolume("local", "a"), sharedVolume("local", "b")))
			first.advance(time.Second)
			// The second daemon has the same directory and the same host.
			second := shelved(t, dir, drivers, func(o *manager.Options) {
				if o.Backend = first.backend; guids == nil {
					if err := first.backend.Delete(t.Context(), "c"); err != nil {
						t.Fatal(err)
					}
				}
			})
			driver.mustHave(t, 0, "mount a", "mount b", "unmount b", "unmount a")
			if left, files := second.Volumes(), records(t, dir); len(left)+len(files) != 0 {
				t.Errorf("left are %v, %q", left, files)
			}
			if guids, err := first.backend.List(t.Context()); len(guids) != 0 || err != nil {
				t.Errorf("the host has %q, %v", guids, err)
			}
		})
	}
}

func TestWhatCannotBeUnmountedForWantOfItsDriverWaitsForADaemonWithIt(t *testing.T) {
	dir, driver := t.TempDir(), newShelf()
	first := shelved(t, dir, map[string]manager.VolumeDriver{"local": driver})
	first.launch("c", withVolumes(sharedVolume("local", "a")))
	first.advance(time.Second)
	without := shelved(t, dir, nil)
	without.advance(time.Hour)
	if left := without.Volumes(); len(left) != 1 || left[0].Err == nil || !strings.Contains(left[0].Err.Error(), `"local" has mounted it, and this cell does not have it any more`) {
		t.Errorf("left are %v", left)
	}
	third := shelved(t, dir, map[string]manager.VolumeDriver{"local": driver})
	if left := third.Volumes(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	driver.mustHave(t, 0, "mount a", "unmount a")
}

// A modelled shelf says what it is.
type modelled struct {
	*shelf
	model string
}

func (m modelled) Kind() string { return m.model }

func TestAVolumeIsUnmountedOnlyByADriverLikeTheOneThatMountedIt(t *testing.T) {
	dir, old, other := t.TempDir(), newShelf(), newShelf()
	drivers := func(d manager.VolumeDriver) map[string]manager.VolumeDriver {
		return map[string]manager.VolumeDriver{"nfs": d}
	}
	first := shelved(t, dir, drivers(modelled{old, "the plugin at /run/old.sock"}))
	first.launch("c", withVolumes(dedicatedVolume("nfs", "a"), sharedVolume("nfs", "b")))
	first.advance(time.Second)
	for name, driver := range map[string]manager.VolumeDriver{"another": modelled{other, "the plugin at /run/new.sock"}, "one without a kind": other} {
		next := shelved(t, dir, drivers(driver))
		next.advance(time.Hour)
		left := next.Volumes()
		if len(left) != 2 || left[0].Err == nil {
			t.Fatalf("%s: left are %v", name, left)
		}
		for _, want := range []string{"the plugin at /run/old.sock", "another one of that name", "by hand", filepath.Join(dir, "volumes", "c.json")} {
			if why := left[0].Err.Error(); !strings.Contains(why, want) {
				t.Errorf("%s: the reason %q does not say %q", name, why, want)
			}
		}
		// The volume of that name is another one, which containers may have.
		next.launch("d", withVolumes(dedicatedVolume("nfs", "a")))
		next.advance(time.Second)
		if c, _ := next.Get("d"); c.State != executor.Running {
			t.Errorf("%s: the next container is %+v", name, c)
		}
		next.Delete("d")
		next.advance(time.Second)
	}
	other.mustHave(t, 0, "mount a", "unmount a", "mount a", "unmount a")
	same := shelved(t, dir, drivers(modelled{old, "the plugin at /run/old.sock"}))
	if left := same.Volumes(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	old.mustHave(t, 0, "mount a", "mount b", "unmount b", "unmount a")
}

func TestAnOperatorLetsVolumesGoWhoseDriverIsGone(t *testing.T) {
	dir, driver := t.TempDir(), newShelf()
	first := shelved(t, dir, map[string]manager.VolumeDriver{"nfs": driver})
	first.launch("c", withVolumes(sharedVolume("nfs", "a")))
	first.advance(time.Second)
	without := shelved(t, dir, nil)
	without.advance(time.Hour)
	if err := os.Remove(records(t, dir)[0]); err != nil {
		t.Fatal(err)
	}
	without.advance(time.Hour)
	if left := without.Volumes(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// Records of an earlier release have no kind.
func TestAVolumeOfAnEarlierReleaseIsUnmountedByTheDriverOfItsName(t *testing.T) {
	dir, driver := t.TempDir(), newShelf()
	text := `[{"driver":"nfs","container_dir":"/a","mode":"rw","dedicated":{"mounter_id":"a"}}]`
	driver.busy = 1
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "volumes"), 0o700), os.WriteFile(filepath.Join(dir, "volumes", "c.json"), []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	c := shelved(t, dir, map[string]manager.VolumeDriver{"nfs": modelled{driver, "the plugin at /run/a.sock"}})
	c.launch("d", withVolumes(dedicatedVolume("nfs", "a")))
	c.advance(0)
	if d, _ := c.Get("d"); !strings.Contains(d.RunResult.FailureReason, `container "c" has it`) {
		t.Errorf("what it still has goes to %+v", d)
	}
	c.advance(time.Minute)
	if left := c.Volumes(); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
	driver.mustHave(t, 0, "unmount a", "unmount a")
}

func TestClearUnmountsAllVolumes(t *testing.T) {
	dir, driver := t.TempDir(), newShelf()
	c := shelved(t, dir, map[string]manager.VolumeDriver{"local": driver})
	c.launch("c", withVolumes(sharedVolume("local", "a"), sharedVolume("local", "b")))
	c.advance(time.Second)
	driver.busy = 1
	var left *manager.LeftError
	if err := c.Clear(t.Context()); !errors.As(err, &left) || left.Containers != 0 || left.VolumesOf != 1 || !strings.Contains(err.Error(), "device busy") {
		t.Errorf("with a volume that is busy: %v", err)
	}
	if err := c.Clear(t.Context()); err != nil {
		t.Error(err)
	}
	driver.mustHave(t, 0, "mount a", "mount b", "unmount b", "unmount a", "unmount b", "unmount a")
	if files := records(t, dir); len(files) != 0 {
		t.Errorf("left are %q", files)
	}
}

func TestClearLeavesVolumesToContainersThatMayStillRun(t *testing.T) {
	dir, driver := t.TempDir(), newShelf()
	drivers := map[string]manager.VolumeDriver{"local": driver}
	first := shelved(t, dir, drivers)
	first.launch("earlier", withVolumes(sharedVolume("local", "a")))
	first.advance(time.Second)
	next := shelved(t, dir, drivers, func(o *manager.Options) { o.Backend = unlistedBackend{first.backend} })
	next.launch("own", withVolumes(sharedVolume("local", "b")))
	next.launch("gone", withVolumes(sharedVolume("local", "c")))
	next.advance(time.Second)
	driver.busy = 1
	next.Delete("gone")
	next.advance(0)
	var left *manager.LeftError
	if err := next.Clear(t.Context()); !errors.Is(err, fs.ErrNotExist) || errors.As(err, &left) {
		t.Errorf("it says %v", err)
	}
	slices.Sort(driver.calls[4:]) // Clear unmounts several at a time
	driver.mustHave(t, 1, "mount a", "mount b", "mount c", "unmount c", "unmount b", "unmount c")
	if guids, err := first.backend.List(t.Context()); err != nil || !slices.Equal(guids, []string{"earlier"}) {
		t.Errorf("the host has %q, %v", guids, err)
	}
}

func TestADriverIsOfferedWhileItIsInOrder(t *testing.T) {
	driver, simple := newShelf(), &mounter{}
	driver.probeErr = errors.New("connection refused")
	c := shelved(t, "", map[string]manager.VolumeDriver{"plugin": driver, "simple": simple})
	for _, step := range []struct {
		after time.Duration
		err   error
		want  []string
	}{
		{0, nil, []string{"simple"}}, // it was out of order at the start
		{manager.DefaultVolumeInterval, nil, []string{"plugin", "simple"}},
		{manager.DefaultVolumeInterval, errors.New("gone"), []string{"plugin", "simple"}},
		{manager.DefaultVolumeInterval, nil, []string{"simple"}},
		{manager.DefaultVolumeInterval, nil, []string{"plugin", "simple"}},
	} {
		c.advance(step.after)
		if got := c.VolumeDrivers(); !slices.Equal(got, step.want) {
			t.Errorf("after %v the drivers are %q, want %q", c.now.Sub(epoch), got, step.want)
		}
		driver.probeErr = step.err
	}
}

func TestAPathThatIsNotAbsoluteIsRefused(t *testing.T) {
	c := shelved(t, "", map[string]manager.VolumeDriver{"odd": relative{}})
	c.launch("c", withVolumes(sharedVolume("odd", "a")))
	c.advance(0)
	if got, _ := c.Get("c"); !strings.Contains(describe(got), `it says that the volume is at "../etc", which is not an absolute path`) {
		t.Errorf("it is %s", describe(got))
	}
}

type relative struct{}

func (relative) Mount(context.Context, string, executor.VolumeMount) (string, error) {
	return "../etc", nil
}
func (relative) Unmount(context.Context, string, executor.VolumeMount) error { return nil }
