package daemon

import (
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/volumes/volumetest"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/localcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

func sampleCell(dir string) *Cell {
	return &Cell{CellID: "cell-1", Dir: dir, Backend: ProcessBackend, Containers: 1, FirstPort: 61001, LastPort: 61010, ExternalIP: "127.0.0.1"}
}

func TestACellWithoutRoomSaysWhatItLacks(t *testing.T) {
	for _, tt := range []struct {
		memory, disk int64 // that are set; the host has nothing
		want         string
	}{{64, 64, ""}, {0, 64, "--memory-mb"}, {64, 0, "--disk-mb"}} {
		c := Cell{MemoryMB: tt.memory, DiskMB: tt.disk}
		err := c.checkRoom(t.Context(), &Backend{ContainerBackend: lacking{}})
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestFurtherResourcesOfACellAreNamesAndWholeNumbers(t *testing.T) {
	for _, tt := range []struct {
		set  map[string]string
		want string
	}{
		{nil, ""},
		{map[string]string{"gpu": "2", "fpga": "0"}, ""},
		{map[string]string{"gpu": "two"}, `want whole numbers, such as gpu=2; gpu is "two"`},
		{map[string]string{"gpu": "-1"}, "invalid input: extra_resources.gpu: -1: want at least 0"},
		{map[string]string{"memory": "1"}, "invalid input: extra_resources: memory: want a name other than memory"},
	} {
		c := sampleCell("")
		c.ExtraResources = tt.set
		var got string
		c.CheckCell(func(name, want string) { got += name + ": " + want })
		if tt.want == "" && got != "" || !strings.HasPrefix(strings.TrimPrefix(got, "extra_resources: "), tt.want) {
			t.Errorf("%v: %q", tt.set, got)
		}
	}
	c := sampleCell("")
	c.ExtraResources = map[string]string{"gpu": "2"}
	if extra, err := c.extra(); err != nil || extra["gpu"] != 2 {
		t.Errorf("got %v, %v", extra, err)
	}
}

// unasked is a control plane that nobody asks anything.
type unasked struct{ CellBBS }

func openCell(t *testing.T, dir string) (*Backend, error) {
	t.Helper()
	_, b, err := sampleCell(dir).Open(t.Context(), unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(io.Discard))
	return b, err
}

func TestACellOffersOnlyWhatItsBackendCanMake(t *testing.T) {
	c := sampleCell(t.TempDir())
	c.ImageDirs, c.Preloaded = []string{"/images"}, map[string]string{"linux": "oci:///images/linux"}
	cell, backend, err := c.Open(t.Context(), unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	state, err := cell.State(t.Context())
	if err != nil || !slices.Equal(state.RootFSProviders, []string{"host"}) {
		t.Errorf("plain processes offer the root file systems %q, %v", state.RootFSProviders, err)
	}
	want := []string{"cpu_weight", "privileged", "egress_rules", "network", "certificate_properties", "image_username"}
	if !slices.Equal(state.RefusedFields, want) {
		t.Errorf("plain processes refuse %q, want %q", state.RefusedFields, want)
	}
}

func TestACellWithAnAuthorityTakesWorkWithCertificateProperties(t *testing.T) {
	c, log := sampleCell(t.TempDir()), new(strings.Builder)
	authority, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	c.IdentityCACert, c.IdentityCAKey, c.IdentityLifetime = authority.CA(), authority.CAKey(), time.Hour
	cell, backend, err := c.Open(t.Context(), unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(log))
	if err != nil {
		t.Fatal(err)
	}
	defer backend.Close()
	if state, err := cell.State(t.Context()); err != nil || slices.Contains(state.RefusedFields, "certificate_properties") {
		t.Errorf("the cell refuses %q, %v", state.RefusedFields, err)
	}
	if text := log.String(); !strings.Contains(text, "containers get certificates") || strings.Contains(text, "PRIVATE") {
		t.Errorf("the log says %s", text)
	}
}

func TestAnAuthorityForContainersThatCannotBeUsedIsNamed(t *testing.T) {
	fleet, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, err := devcerts.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	leaf, leafKey, err := fleet.Issue(devcerts.Request{File: "leaf", Name: "leaf", For: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, cert, key string
		lifetime        time.Duration
		want            string
	}{
		{"no such certificate", filepath.Join(t.TempDir(), "none"), fleet.CAKey(), time.Hour, "identity_ca_cert: open "},
		{"no such key", fleet.CA(), filepath.Join(t.TempDir(), "none"), time.Hour, "identity_ca_key: open "},
		{"another key", fleet.CA(), other.CAKey(), time.Hour, "want a pair"},
		{"no authority", leaf, leafKey, time.Hour, "may not sign others"},
		{"a lifetime beyond the authority's", fleet.CA(), fleet.CAKey(), 20 * 365 * 24 * time.Hour, "want a shorter lifetime"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := sampleCell(t.TempDir())
			c.IdentityCACert, c.IdentityCAKey, c.IdentityLifetime = tt.cert, tt.key, tt.lifetime
			_, _, err := c.Open(t.Context(), unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(io.Discard))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
	e := Endpoint{TLS: TLS{TLSCert: leaf, TLSKey: leafKey, TLSCA: fleet.CA()}}
	own, without := &Server{settings: &e, certificates: open(t, e.TLS)}, &Server{}
	if err := own.CheckIdentity(fleet.CA()); err == nil || !strings.Contains(err.Error(), "use an authority for containers alone") {
		t.Errorf("the fleet's own authority: %v", err)
	}
	if err := errors.Join(own.CheckIdentity(other.CA()), own.CheckIdentity(""), without.CheckIdentity(fleet.CA())); err != nil {
		t.Errorf("another authority, or none: %v", err)
	}
}

func TestACellOffersLayersOnTheImagesThatItHas(t *testing.T) {
	c := sampleCell(t.TempDir())
	c.Preloaded = map[string]string{"linux": "oci:///images/linux", "own": "host:"}
	real := executor.Host{Features: []executor.Feature{{Name: executor.FeatureRootFS}}}
	want := []string{"host", "preloaded:linux", "preloaded+layer:linux", "preloaded:own"}
	if got := c.rootFSProviders(real); !slices.Equal(got, want) {
		t.Errorf("the root file systems are %q, want %q", got, want)
	}
	if got := c.rootFSProviders(executor.Host{}); !slices.Equal(got, []string{"host"}) {
		t.Errorf("those of plain processes are %q", got)
	}
}

// mustOpen opens a cell that is closed at the end of the test.
func mustOpen(t *testing.T, c *Cell) *localcell.Cell {
	t.Helper()
	cell, backend, err := c.Open(t.Context(), unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { backend.Close() })
	return cell
}

func TestACordonOutlivesTheProcessOfItsCell(t *testing.T) {
	c := sampleCell(t.TempDir())
	for _, cordoned := range []bool{true, true, false, false} {
		before, backend, err := c.Open(t.Context(), unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(before.Cordon(t.Context(), cordoned), backend.Close()); err != nil {
			t.Fatal(err)
		}
		after, backend, err := c.Open(t.Context(), unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(io.Discard))
		if err != nil {
			t.Fatal(err)
		}
		if s, err := after.State(t.Context()); err != nil || s.Cordoned != cordoned {
			t.Errorf("after it was started again its state is %+v, %v, want cordoned: %v", s, err, cordoned)
		}
		if err := backend.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACellOffersTheVolumeDriversOfItsSettingsWhileTheyAreInOrder(t *testing.T) {
	sockets, err := os.MkdirTemp("", "v") // whose path is short enough for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(sockets)
	plugin := volumetest.StartPlugin(t, sockets)
	c := sampleCell(t.TempDir())
	c.VolumeRoot, c.VolumePlugins = filepath.Join(t.TempDir(), "volumes"), map[string]string{"nfs": plugin.Socket}
	c.VolumeExports, c.VolumeExportsWritable = map[string]string{"data": t.TempDir()}, []string{"data"}
	c.VolumeInterval, c.VolumeTimeout = time.Millisecond, time.Minute
	cell := mustOpen(t, c)
	offers := func(want ...string) {
		t.Helper()
		var got []string
		for deadline := time.Now().Add(time.Minute); !slices.Equal(got, want); {
			cell.Manager.Tick(t.Context())
			state, err := cell.State(t.Context())
			if got = state.VolumeDrivers; err != nil || time.Now().After(deadline) {
				t.Fatalf("the cell offers %q, %v, want %q", got, err, want)
			}
		}
	}
	offers("export", "local", "nfs")
	plugin.Stop()
	offers("export", "local")
	plugin.Start(t)
	offers("export", "local", "nfs")
}

func TestSettingsOfVolumesThatCannotBeAreNamed(t *testing.T) {
	changed, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(changed+"/b/c", 0o755); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*Cell){
		"volume_exports: export \"a\": ": func(c *Cell) { c.VolumeExports = map[string]string{"a": "/nowhere"} },
		"volume_root: ":                  func(c *Cell) { c.VolumeRoot = "/dev/null/x" },
		"volume_root: " + changed + "/volumes lies in " + changed + ", which containers may change by the export \"a\"": func(c *Cell) {
			c.VolumeRoot, c.VolumeExports, c.VolumeExportsWritable = changed+"/volumes", map[string]string{"a": changed}, []string{"a"}
		},
		"volume_exports: the export \"a\", " + changed + "/b/c, lies in a volume of " + changed: func(c *Cell) {
			c.VolumeRoot, c.VolumeExports = changed, map[string]string{"a": changed + "/b/c"}
		},
	} {
		c := sampleCell(t.TempDir())
		change(c)
		_, _, err := c.Open(t.Context(), unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(io.Discard))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
	c := sampleCell("")
	c.VolumeExportsWritable, c.VolumePlugins = []string{"a"}, map[string]string{"local": "/x", "nfs": "x"}
	var got []string
	c.CheckCell(func(name, want string) { got = append(got, name+": "+want) })
	want := []string{
		`volume_exports_writable: want names from volume_exports; "a" is none`,
		`volume_plugins: want another name than "local", which is that of a driver of this cell`,
		`volume_plugins: want the absolute path of a socket for "nfs"`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("reported is %q, want %q", got, want)
	}
}

// The daemon's own type must not hide what its backend can do beyond the rest.
func TestACellRemovesWhatAnEarlierOneHasSetAside(t *testing.T) {
	dir := t.TempDir()
	aside := filepath.Join(dir, ProcessBackend, ".lost", "files")
	if err := os.MkdirAll(aside, 0o700); err != nil {
		t.Fatal(err)
	}
	mustOpen(t, sampleCell(dir)).Manager.Tick(t.Context())
	if _, err := os.Stat(aside); !os.IsNotExist(err) {
		t.Errorf("what was set aside is still there: %v", err)
	}
}

func TestTheDirectoryOfACellBelongsToOneProcess(t *testing.T) {
	dir := t.TempDir()
	first, err := openCell(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openCell(t, dir); err == nil || !strings.Contains(err.Error(), "is in use by process") || !strings.Contains(err.Error(), "another directory with --dir") {
		t.Errorf("another cell in the same directory: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := openCell(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if _, err := openCell(t, filepath.Join("/dev/null", "x")); err == nil || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("a directory that cannot be: %v", err)
	}
}

// Only then does the cell that follows report that what the one before had is
// gone.
func TestACellBeginsWithoutTheProcessesOfTheOneBefore(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	before, err := OpenBackend(ctx, BackendOptions{Kind: ProcessBackend, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	exited := make(chan executor.Exit, 1)
	if _, err := before.Create(ctx, executor.ContainerSpec{GUID: "left", RootFS: "host:"}); err != nil {
		t.Fatal(err)
	}
	if _, err := before.Start(ctx, "left", executor.ProcessSpec{
		Path: "sleep", Args: []string{"1000"}, User: "root", Env: []executor.EnvVar{{Name: "PATH", Value: "/usr/bin:/bin"}},
		Exited: func(e executor.Exit) { exited <- e },
	}); err != nil {
		t.Fatal(err)
	}
	cell, b, err := sampleCell(dir).Open(ctx, unasked{}, "http://127.0.0.1:1", new(httpapi.Prometheus), new(Logging).Logger(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	if cell.Rep.Tick(ctx); cell.Rep.Present() { // and the control plane was not asked anything
		t.Error("it is present while the process runs")
	}
	cell.Manager.Tick(ctx)
	if guids, err := b.List(ctx); err != nil || len(guids) > 0 {
		t.Errorf("it begins with %q, %v", guids, err)
		_ = b.Delete(ctx, "left")
	}
	<-exited
	select {
	case <-cell.Manager.Cleared():
	default:
		t.Error("its host is not cleared")
	}
}

// The name of the owner of a directory outlives the process, as the lock proves
// that the one before is over. It does not outlive the lock.
func TestTheOwnerOfADirectoryIsTheSameForAllWhoFollow(t *testing.T) {
	dir := t.TempDir()
	owner := func(dir string) string {
		t.Helper()
		d, err := OpenDir("dir", dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		name, err := d.Owner()
		if err != nil || !strings.HasPrefix(name, dir+" on ") {
			t.Fatalf("%q, %v", name, err)
		}
		return strings.TrimPrefix(name, dir)
	}
	first := owner(dir)
	if lock, err := os.Open(filepath.Join(dir, "lock")); err != nil || lockPlace(lock) == "" {
		t.Logf("nothing here tells one lock from another: %v", err)
	} else if again := owner(dir); again != first {
		t.Errorf("the next owner is %q, after %q", again, first)
	}
	copied := t.TempDir()
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if other := owner(copied); other == first {
		t.Errorf("the owner of a copy is %q too", other)
	}
	if err := os.WriteFile(filepath.Join(dir, "owner"), []byte("boot yesterday\n"+first+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if later := owner(dir); later == first {
		t.Errorf("the owner after a restart of the host is %q too", later)
	}
	if err := os.Remove(filepath.Join(dir, "owner")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "owner"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := openCell(t, dir); err == nil || !strings.Contains(err.Error(), "--dir") {
		t.Errorf("an owner that cannot be noted: %v", err)
	}
}

// A portless backend cannot map ports. It lists, deletes and sizes as another.
type portless struct{ executor.ContainerBackend }

func (portless) Probe(context.Context) (executor.Host, error) {
	return executor.Host{Backend: "portless", MemoryMB: 1024, DiskMB: 1024}, nil
}

func (p portless) Create(ctx context.Context, c executor.ContainerSpec) (executor.Endpoint, error) {
	if len(c.Ports) > 0 {
		return executor.Endpoint{}, &executor.BackendError{Kind: executor.ErrNoPort, GUID: c.GUID}
	}
	return p.ContainerBackend.Create(ctx, c)
}

// absent is a control plane that answers nothing.
type absent struct{ CellBBS }

func (absent) Announce(context.Context, bbs.CellPresence, string, time.Duration) error {
	return httpapi.ErrUnreachable
}

func (absent) ActualLRPs(context.Context, storage.ActualLRPFilter) iter.Seq2[lrp.ActualLRP, error] {
	return func(yield func(lrp.ActualLRP, error) bool) { yield(lrp.ActualLRP{}, httpapi.ErrUnreachable) }
}

func (absent) Tasks(context.Context, storage.TaskFilter) iter.Seq2[*task.Task, error] {
	return func(yield func(*task.Task, error) bool) { yield(nil, httpapi.ErrUnreachable) }
}

func TestTheSelfTestMapsAPort(t *testing.T) {
	var log strings.Builder
	c := sampleCell(t.TempDir())
	c.SelfTest = true
	dir, err := OpenDir("dir", c.Dir)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	backend := &Backend{ContainerBackend: portless{scripted.New(scripted.Options{})}}
	cell, err := c.make(t.Context(), backend, dir, absent{}, "http://127.0.0.1:1", nil, new(httpapi.Prometheus), new(Logging).Logger(&log))
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		cell.Tick(t.Context())
		cell.Manager.Tick(t.Context())
	}
	if !strings.Contains(log.String(), "the self-test of the cell failed") || !strings.Contains(log.String(), "no port available") {
		t.Errorf("a cell that cannot map ports wrote\n%s", log.String())
	}
}

func TestAnAddressThatContainersCannotHaveIsRefused(t *testing.T) {
	for _, ip := range []string{"", "cell.example", "127.0.0.1:80", "0.0.0.0", "::"} {
		c := sampleCell("x")
		c.ExternalIP = ip
		var names []string
		c.CheckCell(func(name, _ string) { names = append(names, name) })
		if len(names) != 1 || names[0] != "external_ip" {
			t.Errorf("%q: %q", ip, names)
		}
	}
	sampleCell("x").CheckCell(func(name, want string) { t.Errorf("%s: %s", name, want) })
}
