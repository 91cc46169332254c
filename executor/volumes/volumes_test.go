package volumes_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/executor/volumes"
	"github.com/diegosdk/diego/executor/volumes/volumetest"
)

func must[T any](t testing.TB) func(T, error) T {
	return func(x T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
}

func volume(id, mode, config string) executor.VolumeMount {
	return executor.VolumeMount{ContainerDir: "/data", Mode: mode, Shared: &executor.SharedDevice{VolumeID: id, MountConfig: config}}
}

func TestLocalPassesTheSuite(t *testing.T) {
	root := filepath.Join(t.TempDir(), "volumes")
	volumetest.Run(t, volumetest.Options{IDs: [2]string{"one", "two"}, New: func(t testing.TB) manager.VolumeDriver {
		return must[*volumes.Local](t)(volumes.NewLocal(root))
	}})
	entries := must[[]fs.DirEntry](t)(os.ReadDir(root))
	if len(entries) != 2 {
		t.Errorf("below the root are %v", entries)
	}
}

func TestExportsPassTheSuite(t *testing.T) {
	exports := map[string]volumes.Export{"one": {Path: t.TempDir(), Writable: true}, "two": {Path: t.TempDir(), Writable: true}}
	volumetest.Run(t, volumetest.Options{IDs: [2]string{"one", "two"}, New: func(t testing.TB) manager.VolumeDriver {
		return must[*volumes.Exports](t)(volumes.NewExports(exports))
	}})
}

// The plugin of volumetest stands for those that there are.
func TestPluginPassesTheSuite(t *testing.T) {
	plugin := volumetest.StartPlugin(t, shortDir(t))
	volumetest.Run(t, volumetest.Options{IDs: [2]string{"one", "two"}, MountConfig: `{"size":"1g"}`, New: func(testing.TB) manager.VolumeDriver {
		return volumes.NewPlugin(plugin.Socket)
	}})
	if left := plugin.Mounted(); len(left) != 0 {
		t.Errorf("still mounted are %q", left)
	}
	if got := plugin.Options("one"); !maps.Equal(got, map[string]string{"size": "1g"}) {
		t.Errorf("the volume was created with %v", got)
	}
}

// shortDir is a directory for a socket, whose path has few bytes on some systems.
func shortDir(t *testing.T) string {
	dir := must[string](t)(os.MkdirTemp("", "v"))
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestALocalVolumeIsForAllUsersOfContainersAndForNobodyElse(t *testing.T) {
	root := filepath.Join(t.TempDir(), "volumes")
	if err := os.Mkdir(root, 0o755); err != nil {
		t.Fatal(err)
	}
	d := must[*volumes.Local](t)(volumes.NewLocal(root))
	dir := must[string](t)(d.Mount(t.Context(), "c", volume("a", "r", "")))
	for path, want := range map[string]fs.FileMode{root: 0o700, dir: 0o777} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s is %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	// What the operator says of a volume that is there stays.
	if err := os.Chmod(dir, 0o750); err != nil {
		t.Fatal(err)
	}
	must[string](t)(d.Mount(t.Context(), "c", volume("a", "r", "{}")))
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("it is %v, %v", info.Mode(), err)
	}
}

// The mode of a directory cannot be chosen when it is made: the umask of the daemon
// counts too.
func TestALocalVolumeOfADaemonThatWasKilledAsItMadeItIsForAllUsers(t *testing.T) {
	root := t.TempDir()
	for name, modes := range map[string][2]fs.FileMode{"new": {fs.ModeSticky, 0o777}, "closed": {0o700, 0o700}, "closed-by-its-user": {0, 0}} {
		dir := filepath.Join(root, name)
		if err := os.Mkdir(dir, modes[0]); err != nil {
			t.Fatal(err)
		}
		got, err := must[*volumes.Local](t)(volumes.NewLocal(root)).Mount(t.Context(), "c", volume(name, "rw", ""))
		if err != nil {
			t.Fatal(err)
		}
		if mode := must[fs.FileInfo](t)(os.Stat(got)).Mode().Perm(); got != dir || mode != modes[1] {
			t.Errorf("%s: %s has the mode %v", name, got, mode)
		}
	}
}

func TestVolumesThatTheDriversRefuse(t *testing.T) {
	root, exported, elsewhere := t.TempDir(), t.TempDir(), t.TempDir()
	local := must[*volumes.Local](t)(volumes.NewLocal(root))
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.Mkdir(moved, 0o755); err != nil {
		t.Fatal(err)
	}
	exports := must[*volumes.Exports](t)(volumes.NewExports(map[string]volumes.Export{"readonly": {Path: exported}, "moved": {Path: moved, Writable: true}}))
	for _, step := range []error{
		os.Symlink(elsewhere, filepath.Join(root, "link")), os.WriteFile(filepath.Join(root, "file"), nil, 0o600),
		os.Remove(moved), os.Symlink(elsewhere, moved),
	} {
		if step != nil {
			t.Fatal(step)
		}
	}
	for _, test := range []struct {
		driver manager.VolumeDriver
		volume executor.VolumeMount
		want   string
	}{
		{local, volume("link", "rw", ""), "link is not a directory; move it away"},
		{local, volume("file", "rw", ""), "file is not a directory"},
		{local, volume("a", "rw", `{"size":1}`), "this driver takes none"},
		{local, volume("../x", "rw", ""), `the volume_id "../x" is not a name of a volume; use letters`},
		{local, executor.VolumeMount{Dedicated: &executor.DedicatedDevice{}}, "the mounter_id has 0 bytes; a name of a volume has 1 to 128"},
		{exports, volume("readonly", "rw", ""), `the export "readonly" is read-only; mount it with the mode "r"`},
		{exports, volume("other", "r", ""), `this cell exports no "other"; it exports ["moved" "readonly"]`},
		{exports, volume("readonly", "r", "x"), "this driver takes none"},
		{exports, volume("moved", "r", ""), "moved has become a link to " + elsewhere},
	} {
		if path, err := test.driver.Mount(t.Context(), "c", test.volume); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%+v: %q, %v, want %q", test.volume, path, err, test.want)
		}
	}
}

func TestExportsThatAreRefused(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "a/b", "ab"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("a/b", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	at := func(name string, writable bool) volumes.Export {
		return volumes.Export{Path: filepath.Join(dir, name), Writable: writable}
	}
	for name, test := range map[string]struct {
		exports map[string]volumes.Export
		want    string
	}{
		"a name that leads elsewhere":         {map[string]volumes.Export{"../a": at("a", false)}, `export "../a": the volume_id "../a" is not a name`},
		"a relative path":                     {map[string]volumes.Export{"a": {Path: "a"}}, "a is not an absolute path"},
		"nothing":                             {map[string]volumes.Export{"a": at("none", false)}, "no such file"},
		"below one that is writable":          {map[string]volumes.Export{"a": at("a", true), "b": at("a/b", false)}, `lies below`},
		"below one that is writable, by link": {map[string]volumes.Export{"a": at("a", true), "b": at("link", false)}, `lies below`},
		"below one that is read-only":         {map[string]volumes.Export{"a": at("a", false), "b": at("link", true)}, ""},
		"beside one with a similar name":      {map[string]volumes.Export{"a": at("a", true), "b": at("ab", true)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := volumes.NewExports(test.exports)
			if (test.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

func TestAPluginIsProbedAndItsWordsAreReported(t *testing.T) {
	plugin := volumetest.StartPlugin(t, shortDir(t))
	d := volumes.NewPlugin(plugin.Socket)
	if err := d.Probe(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := d.Mount(t.Context(), "c", volume("a", "rw", "7")); err == nil || !strings.Contains(err.Error(), "has to be a JSON object of strings") {
		t.Errorf("options that are none: %v", err)
	}
	plugin.Break("no quorum")
	if _, err := d.Mount(t.Context(), "c", volume("a", "rw", "")); err == nil || err.Error() != "the plugin refuses VolumeDriver.Create: no quorum" {
		t.Errorf("a mount that is refused: %v", err)
	}
	if err := d.Unmount(t.Context(), "c", volume("a", "rw", "")); err != nil {
		t.Errorf("what was refused is not there to be unmounted: %v", err)
	}
	plugin.Break("")
	must[string](t)(d.Mount(t.Context(), "c", volume("a", "rw", "")))
	plugin.Break("busy")
	if err := d.Unmount(t.Context(), "c", volume("a", "rw", "")); err == nil || err.Error() != "the plugin refuses VolumeDriver.Unmount: busy" {
		t.Errorf("an unmount that is refused: %v", err)
	}
	plugin.Break("")
	plugin.Stop()
	for what, err := range map[string]error{
		"probe": d.Probe(t.Context()), "unmount": d.Unmount(t.Context(), "c", volume("a", "rw", "")),
	} {
		if err == nil || !strings.Contains(err.Error(), plugin.Socket) {
			t.Errorf("%s without a plugin: %v", what, err)
		}
	}
	plugin.Start(t)
	if err := d.Unmount(t.Context(), "c", volume("a", "rw", "")); err != nil || len(plugin.Mounted()) != 0 {
		t.Errorf("after it has come back: %v, mounted are %q", err, plugin.Mounted())
	}
}

func TestACallOfAPluginEndsWithItsContext(t *testing.T) {
	socket := filepath.Join(shortDir(t), "deaf.sock")
	listener := must[net.Listener](t)(net.Listen("unix", socket))
	defer listener.Close() // it accepts nothing
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := volumes.NewPlugin(socket).Probe(ctx); err == nil || ctx.Err() == nil {
		t.Errorf("the error is %v", err)
	}
}

// A plugin goes on with what it was asked for. If the caller's end were its own,
// an Unmount could overtake a Mount, and a second one unmount what another
// container has.
func TestAPluginThatIsMountingIsWaitedFor(t *testing.T) {
	socket := filepath.Join(shortDir(t), "slow.sock")
	listener := must[net.Listener](t)(net.Listen("unix", socket))
	var giveUp context.CancelFunc // while the plugin works
	unmounts := 0
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/VolumeDriver.Unmount":
			unmounts++
			giveUp()
		case "/VolumeDriver.Mount":
			giveUp()
		}
		fmt.Fprint(w, `{"Mountpoint":"/there"}`)
	})}
	go server.Serve(listener)
	defer server.Close()
	d := volumes.NewPlugin(socket)
	for range 2 {
		mounting, cancel := context.WithCancel(t.Context())
		defer cancel()
		giveUp = cancel
		if path, err := d.Mount(mounting, "c", volume("a", "rw", "")); path != "/there" || err != nil {
			t.Errorf("it is mounted at %q, %v", path, err)
		}
		unmounting, cancel := context.WithCancel(t.Context())
		defer cancel()
		giveUp = cancel
		for range 2 {
			if err := d.Unmount(unmounting, "c", volume("a", "rw", "")); err != nil {
				t.Error(err)
			}
		}
	}
	if unmounts != 2 {
		t.Errorf("it was asked to unmount 2 volumes %d times", unmounts)
	}
}

// An embedder's cell offers two drivers.
func Example() {
	root, err := os.MkdirTemp("", "volumes")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(root)
	local, err := volumes.NewLocal(root)
	if err != nil {
		panic(err)
	}
	o := manager.Options{Volumes: map[string]manager.VolumeDriver{
		"local": local,
		"nfs":   volumes.NewPlugin("/run/docker/plugins/nfs.sock"),
	}}
	fmt.Println(len(o.Volumes))
	// Output: 2
}
