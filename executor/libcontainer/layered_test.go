//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
	"github.com/diegosdk/diego/executor/manager"
)

// layered is the root file system of an archive on a preloaded one.
func layered(name, from, path string, archive []byte) string {
	sum := sha256.Sum256(archive)
	return "preloaded+layer:" + name + "?" + url.Values{
		"layer": {from}, "layer_path": {path}, "layer_digest": {hex.EncodeToString(sum[:])},
	}.Encode()
}

// serving serves an archive and counts how often.
func serving(t *testing.T, archive []byte) (from string, asked *atomic.Int32) {
	asked = new(atomic.Int32)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Write(archive)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/layer.tgz", asked
}

// preloadedBase makes a fixture with the preloaded image "base".
func preloadedBase(t *testing.T, edit func(*Options)) *fixture {
	t.Helper()
	image := filepath.Join(t.TempDir(), "base.tar")
	if err := os.WriteFile(image, tarOf(
		entry{name: "./", mode: 0o755}, entry{name: "bin/", mode: 0o755}, entry{name: "bin/hello", content: string(hello()), mode: 0o755},
		entry{name: "replaced", content: "old", mode: 0o644, uid: 7}, entry{name: "gone", content: "x", mode: 0o644},
		entry{name: "full/", mode: 0o755}, entry{name: "full/a", content: "x", mode: 0o644},
		entry{name: "home/", mode: 0o750, uid: 1000}, entry{name: "home/kept", content: "kept", mode: 0o600, uid: 1000},
		entry{name: "usr/lib/", mode: 0o755}, entry{name: "lib", link: "usr/lib"},
	), 0o644); err != nil {
		t.Fatal(err)
	}
	return newFixture(t, edit, func(o *Options) { o.Preloaded = map[string]string{"base": "tar://" + image, "host": "host:"} })
}

// file reads a file of a running container, and says to which of its users it
// belongs; it is "" if it is not there.
func (c *cell) file(guid, path string) (content string, uid uint32) {
	c.f.Helper()
	c.f.mu.Lock()
	made := c.f.containers[guid]
	c.f.mu.Unlock()
	file, err := rootfs.Open(made.root, path)
	if err != nil {
		return "", 0
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	var s unix.Stat_t
	if err == nil {
		err = unix.Fstat(int(file.Fd()), &s)
	}
	if err != nil {
		c.f.Fatal(err)
	}
	return string(text), s.Uid - uint32(made.ids.Host(0))
}

func TestALayerIsPutOnAPreloadedRootFileSystem(t *testing.T) {
	eachIDs(t, func(t *testing.T, edit func(*Options)) {
		c := cellOf(t, preloadedBase(t, edit))
		archive := zipped(tarOf(
			entry{name: "bin/added", content: string(hello()), mode: 0o755}, entry{name: "replaced", content: "new", mode: 0o644, uid: 1000},
			entry{name: ".wh.gone"}, entry{name: "full/.wh..wh..opq"}, entry{name: "full/b", content: "b", mode: 0o644},
			entry{name: "home/app", content: "app", mode: 0o600, uid: 1000}, entry{name: "linked", hard: "home/kept"},
			entry{name: "lib/added", content: "lib", mode: 0o644}, entry{name: "absolute", link: "/replaced"},
		))
		from, asked := serving(t, archive)
		for i, size := range []executor.Resources{{MemoryMB: 64, MaxPIDs: 64}, {MemoryMB: 64, MaxPIDs: 64, DiskMB: 16}} {
			guid := fmt.Sprint("layered-", i)
			c.launch(guid, size, manager.Work{RunInfo: executor.RunInfo{
				RootFS: layered("base", from, "/", archive),
				// It runs as long as a monitor that fails lets it.
				Action:  executor.Action{Run: &executor.RunAction{Path: "/bin/added", User: "1000"}},
				Monitor: &executor.Action{Run: &executor.RunAction{Path: "/bin/none", User: "1000"}},
			}})
			var now executor.Container
			c.f.eventually(guid+" is made", func() bool { now, _ = c.Get(guid); return now.State >= executor.Created })
			if now.State != executor.Created {
				t.Fatalf("%s is %v: %+v", guid, now.State, now.RunResult)
			}
			for path, want := range map[string]struct {
				content string
				uid     uint32
			}{
				"/replaced": {"new", 1000}, "/gone": {}, "/full/a": {}, "/full/b": {"b", 0}, "/home/app": {"app", 1000}, "/home/kept": {"kept", 1000},
				"/linked": {"kept", 1000}, "/usr/lib/added": {"lib", 0}, "/lib/added": {"lib", 0}, "/absolute": {"new", 1000},
			} {
				if content, uid := c.file(guid, path); content != want.content || uid != want.uid {
					t.Errorf("%s: %s is %q of user %d, want %q of %d", guid, path, content, uid, want.content, want.uid)
				}
			}
			var s unix.Stat_t
			home, err := rootfs.Find(c.f.containers[guid].root, "/home", 0)
			if err == nil {
				err = unix.Fstat(int(home.Fd()), &s)
				home.Close()
			}
			if err != nil || s.Mode&0o777 != 0o750 {
				t.Errorf("a directory of the image that the layer does not name has the mode %o, %v", s.Mode, err)
			}
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("the layer was downloaded %d times", n)
		}
		// What one container changes, no other sees, and the image stays as it was.
		if err := c.f.StreamIn(c.f.ctx, "layered-0", "/", "root", strings.NewReader(string(tarOf(entry{name: "home/app", content: "mine", mode: 0o644})))); err != nil {
			t.Error(err)
		}
		if content, _ := c.file("layered-1", "/home/app"); content != "app" {
			t.Errorf("another container sees %q", content)
		}
		below, _ := c.f.create(func(s *executor.ContainerSpec) { s.RootFS = "preloaded:base" })
		for path, want := range map[string]string{"/replaced": "old", "/gone": "x", "/full/a": "x", "/full/b": "", "/lib/added": ""} {
			if content, _ := c.file(below, path); content != want {
				t.Errorf("the image below has %q at %s, want %q", content, path, want)
			}
		}
		c.f.delete(below)
		c.remove("layered-0", "layered-1")
	})
}

func TestALayerBelongsToTheDirectoryThatItNames(t *testing.T) {
	c := cellOf(t, preloadedBase(t, func(*Options) {}))
	archive := tarOf(entry{name: ".wh.kept"}, entry{name: "new", content: "new", mode: 0o644}, entry{name: "linked", hard: "new"})
	from, _ := serving(t, archive)
	for guid, path := range map[string]string{"there": "/home", "missing": "/srv/app/", "linked": "/lib"} {
		c.launch(guid, modest, manager.Work{RunInfo: executor.RunInfo{
			RootFS: layered("base", from, path, archive), Action: executor.Action{Run: &executor.RunAction{Path: "/bin/hello", User: "root"}},
		}})
		if r := c.result(guid); r.Failed {
			t.Errorf("%s: %+v", guid, r)
		}
		for _, name := range []string{"new", "linked"} {
			if content, _ := c.file(guid, filepath.Join(path, name)); content != "new" {
				t.Errorf("%s: %s is %q", guid, name, content)
			}
		}
	}
	if content, _ := c.file("there", "/home/kept"); content != "" {
		t.Error("what the layer removes is there")
	}
	if content, _ := c.file("linked", "/usr/lib/new"); content != "new" {
		t.Errorf("a link of the image was not followed: %q", content)
	}
	c.remove("there", "missing", "linked")
}

func TestALayerThatCannotBeTrustedIsRefused(t *testing.T) {
	f := preloadedBase(t, func(*Options) {})
	c := cellOf(t, f, func(o *manager.Options) { o.MaxContentEntries = 50 })
	many := make([]entry, 51)
	for i := range many {
		many[i] = entry{name: fmt.Sprint("file-", i), mode: 0o644}
	}
	good := tarOf(entry{name: "file", content: "x", mode: 0o644})
	for guid, test := range map[string]struct {
		archive []byte
		rootFS  func(from string) string
		want    string
	}{
		"outside":  {archive: tarOf(entry{name: "../../evil", content: "x", mode: 0o644}), want: "leads out of the archive"},
		"through":  {archive: tarOf(entry{name: "l", hard: "../../../etc/passwd"}), want: "l: "},
		"many":     {archive: tarOf(many...), want: "more than 50 entries"},
		"large":    {archive: zipped(tarOf(entry{name: "zeros", content: strings.Repeat("\x00", 17<<20), mode: 0o644})), want: "at most its DiskMB"},
		"torn":     {archive: good[:300], want: "unexpected EOF"},
		"other":    {archive: good, rootFS: func(from string) string { return layered("base", from, "/", []byte("other")) }, want: "sha256"},
		"unknown":  {archive: good, rootFS: func(from string) string { return layered("none", from, "/", good) }, want: `"preloaded:none": Options.Preloaded does not name it`},
		"of-host":  {archive: good, rootFS: func(from string) string { return layered("host", from, "/", good) }, want: "the host's own programs take no layer"},
		"nameless": {archive: good, rootFS: func(string) string { return "preloaded+layer:base" }, want: "root_fs.layer"},
		"a-file":   {archive: good, rootFS: func(from string) string { return layered("base", from, "/replaced/x", good) }, want: "its directory /replaced/x"},
	} {
		t.Run(guid, func(t *testing.T) {
			from, _ := serving(t, test.archive)
			rootFS := layered("base", from, "/", test.archive)
			if test.rootFS != nil {
				rootFS = test.rootFS(from)
			}
			c.launch(guid, executor.Resources{MemoryMB: 64, DiskMB: 16}, manager.Work{RunInfo: executor.RunInfo{
				RootFS: rootFS, Action: executor.Action{Run: &executor.RunAction{Path: "/bin/hello", User: "root"}},
			}})
			if r := c.result(guid); !r.Retryable || !strings.Contains(r.FailureReason, test.want) {
				t.Errorf("it is %+v, want %q", r, test.want)
			}
			c.remove(guid)
		})
	}
}
