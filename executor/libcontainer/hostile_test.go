//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

// hostileArchives are what a tenant may have the cell fetch, packed with gzip,
// with a part of the reason for which a container must fail.
func hostileArchives(t *testing.T) map[string]struct {
	content []byte
	reason  string
} {
	raw := func(content string, headers ...*tar.Header) []byte {
		var b bytes.Buffer
		for _, h := range headers {
			if err := tar.NewWriter(&b).WriteHeader(h); err != nil { // without padding: the content is what follows
				t.Fatal(err)
			}
		}
		b.WriteString(content)
		return zipped(b.Bytes())
	}
	file := func(name string, size int64) *tar.Header {
		return &tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: 0o644, Format: tar.FormatPAX}
	}
	wide := make([]entry, 40_000)
	for i := range wide {
		wide[i] = entry{name: fmt.Sprintf("d%d/%d", i%7, i)}
	}
	whole := zipped(tarOf(entry{name: "f", content: strings.Repeat("random enough? ", 10_000)}))
	return map[string]struct {
		content []byte
		reason  string
	}{
		"deep":               {zipped(tarOf(entry{name: strings.Repeat("d/", 300) + "f"})), "deeper than"},
		"wide":               {zipped(tarOf(wide...)), ""}, // there is no room for them,
		"a long name":        {zipped(tarOf(entry{name: strings.Repeat("n", 300)})), "file name too long"},
		"a long path":        {zipped(tarOf(entry{name: strings.Repeat(strings.Repeat("p", 200)+"/", 30) + "f"})), "more than 4095 bytes"},
		"a name upward":      {zipped(tarOf(entry{name: "../../../etc/evil", content: "x"})), "leads out"},
		"a link upward":      {zipped(tarOf(entry{name: "l", link: "../../etc"}, entry{name: "l/evil", content: "x"})), "leads out"},
		"a hard link upward": {zipped(tarOf(entry{name: "h", hard: "../../../../etc/shadow"})), "leads out"},
		"a device":           {raw("", &tar.Header{Typeflag: tar.TypeBlock, Name: "disk", Devmajor: 8}), "neither file"},
		"a pipe":             {raw("", &tar.Header{Typeflag: tar.TypeFifo, Name: "pipe"}), "neither file"},
		"a negative sum":     {raw("", file("a", 1), file("b", math.MaxInt64)), ""},
		"an endless file":    {raw("", file("sparse", 1<<50)), "too large"},
		"a bomb":             {raw(strings.Repeat("\x00", 3*testContentLimit), file("zeros", 3*testContentLimit)), "too large"},
		"a PAX bomb":         {zipped(paxBomb()), "headers"},
		"cut off":            {whole[:len(whole)/2], "unexpected EOF"},
		"half a tar":         {raw("half", file("f", 1000)), "unexpected EOF"},
		"no archive":         {[]byte("#!/bin/sh\necho"), ""}, // which is said in other words where the format is known
	}
}

// paxBomb is an entry with far more to be said of it than it holds.
func paxBomb() []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "f", Format: tar.FormatPAX,
		PAXRecords: map[string]string{"DIEGO.bomb": strings.Repeat("x", 1<<20-1024)}})
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "g", Format: tar.FormatPAX,
		PAXRecords: map[string]string{"DIEGO.bomb": strings.Repeat("x", 2<<20)}})
	return b.Bytes()
}

func TestAHostileArchiveFailsItsContainerAloneAndLeavesNothing(t *testing.T) {
	archives := hostileArchives(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.Split(r.URL.Path, "/")[2]
		w.Write(archives[name].content)
	}))
	defer server.Close()
	f := newFixture(t)
	dir := t.TempDir()
	m, stop := startManager(t, f.Backend, dir)
	t.Cleanup(stop)
	c := &cell{m, f, m.Subscribe()}
	t.Cleanup(c.news.Close)
	c.launch("neighbour", modest, script("nobody", "echo ready; "+idle))
	c.await("neighbour", executor.Running)
	kept := func() (bytes int64) {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if info, infoErr := d.Info(); err == nil && infoErr == nil && !d.IsDir() {
				bytes += info.Size()
			}
			return nil
		})
		return bytes
	}
	before, files := kept(), costs(t)
	resources := executor.Resources{MemoryMB: 64, MaxPIDs: 64, DiskMB: 48}
	type launched struct{ guid, reason string }
	all := map[string]launched{}
	for way, ask := range map[string]func(w *manager.Work, from string, content []byte){
		"download": func(w *manager.Work, from string, _ []byte) {
			w.Setup = &executor.Action{Download: &executor.DownloadAction{From: from, To: "/tmp/app", User: "root"}}
		},
		"dependency": func(w *manager.Work, from string, _ []byte) {
			w.CachedDependencies = []executor.CachedDependency{{Name: "d", From: from, To: "/app", CacheKey: from}}
		},
		"layer": func(w *manager.Work, from string, content []byte) {
			sum := sha256.Sum256(content)
			w.ImageLayers = []executor.ImageLayer{{Name: "l", URL: from, DestinationPath: "/app", LayerType: executor.LayerExclusive,
				MediaType: executor.MediaTypeTGZ, DigestAlgorithm: "SHA256", DigestValue: hex.EncodeToString(sum[:])}}
			w.LegacyDownloadUser = "root"
		},
	} {
		for name, archive := range archives {
			guid := fmt.Sprint("hostile-", len(all))
			all[way+" of "+name] = launched{guid, archive.reason}
			c.launch(guid, resources, edited(script("root", "true"), func(w *manager.Work) {
				ask(w, server.URL+"/"+way+"/"+url.PathEscape(name), archive.content)
			}))
		}
	}
	for name, is := range all {
		t.Run(name, func(t *testing.T) {
			if r := c.result(is.guid); !r.Failed || !strings.Contains(r.FailureReason, is.reason) || len(r.FailureReason) > 1000 {
				t.Errorf("the result is %+v, want the reason %q", r, is.reason)
			}
			c.Delete(is.guid)
		})
	}
	f.eventually("only the neighbour is left", func() bool { return len(c.List()) == 1 })
	if now, ok := c.Get("neighbour"); !ok || now.State != executor.Running {
		t.Errorf("the neighbour is %+v", now)
	}
	const logs = 64 << 10
	if more := kept() - before; more > logs {
		t.Errorf("%d bytes are left in the directory of the cell", more)
	}
	f.eventually("the descriptors are closed", func() bool { return costs(t).since(files).files <= 2*idleWires+10 })
	c.remove("neighbour")
}
