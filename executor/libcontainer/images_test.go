//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
)

type entry struct {
	name, content, link, hard string
	mode                      int64
	uid                       int
}

func tarOf(entries ...entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content)), Uid: e.uid, Gid: e.uid}
		switch {
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		case e.hard != "":
			h.Typeflag, h.Linkname = tar.TypeLink, e.hard
		}
		w.WriteHeader(h)
		w.Write([]byte(e.content))
	}
	w.Close()
	return b.Bytes()
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}

// A layout is an OCI image layout that a test writes.
type layout struct {
	t   testing.TB
	dir string
}

func newLayout(t testing.TB, dir string) layout {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "blobs/sha256"), 0o755); err != nil {
		t.Fatal(err)
	}
	return layout{t, dir}
}

func (l layout) blob(b []byte) string {
	sum := sha256.Sum256(b)
	name := hex.EncodeToString(sum[:])
	if err := os.WriteFile(filepath.Join(l.dir, "blobs/sha256", name), b, 0o644); err != nil {
		l.t.Fatal(err)
	}
	return "sha256:" + name
}

func (l layout) json(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		l.t.Fatal(err)
	}
	return text
}

func (l layout) image(ref string, layers ...[]byte) map[string]any {
	var list []map[string]any
	for _, b := range layers {
		list = append(list, map[string]any{"mediaType": "application/vnd.oci.image.layer.v1.tar+gzip", "digest": l.blob(b), "size": len(b)})
	}
	manifest := l.json(map[string]any{"schemaVersion": 2, "layers": list})
	return map[string]any{"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": l.blob(manifest), "size": len(manifest),
		"annotations": map[string]string{rootfs.RefName: ref}}
}

func (l layout) index(images ...map[string]any) {
	if err := os.WriteFile(filepath.Join(l.dir, "index.json"), l.json(map[string]any{"schemaVersion": 2, "manifests": images}), 0o644); err != nil {
		l.t.Fatal(err)
	}
}

func TestRootFileSystemsOfEveryKind(t *testing.T) {
	images := t.TempDir()
	f := newFixture(t, func(o *Options) {
		o.ImageDirs = []string{images}
		o.Preloaded = map[string]string{"small": "dir://" + images + "/dir"}
	})
	program := string(hello())
	small := []entry{
		{name: "./", mode: 0o755}, {name: "bin/", mode: 0o755}, {name: "bin/hello", content: program, mode: 0o755},
		{name: "sbin", link: "/bin"}, {name: "sbin/again", hard: "bin/hello"}, {name: "owned", content: "x", mode: 0o600, uid: 7},
	}
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(images, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("image.tar", tarOf(small...))
	write("image.tgz", zipped(tarOf(small...)))
	if err := os.MkdirAll(filepath.Join(images, "dir/bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(images, "dir/bin/hello"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	l := newLayout(t, filepath.Join(images, "layout"))
	base := zipped(tarOf(append(small, entry{name: "gone", content: "x", mode: 0o644}, entry{name: "full/", mode: 0o755},
		entry{name: "full/a", content: "x", mode: 0o644})...))
	top := zipped(tarOf(entry{name: ".wh.gone"}, entry{name: "full/.wh..wh..opq"}, entry{name: "full/b", content: "x", mode: 0o644}))
	l.index(l.image("latest", base, top), l.image("other", base))

	for _, rootFS := range []string{
		"dir://" + images + "/dir", "preloaded:small", "tar://" + images + "/image.tar", "tar://" + images + "/image.tgz",
		"oci://" + images + "/layout#latest", "oci://" + images + "/layout#other",
	} {
		t.Run(rootFS[:3]+filepath.Base(rootFS), func(t *testing.T) {
			guid, _ := f.create(func(c *executor.ContainerSpec) { c.RootFS = rootFS; c.Resources.DiskMB = 16 })
			r := f.as("1000", guid, "", func(s *executor.ProcessSpec) {
				s.Path, s.Args, s.Env = "hello", nil, []executor.EnvVar{{Name: "PATH", Value: "/nowhere:/bin"}}
			})
			if e := r.end(); !e.Success() || r.stderr.String() != "hello\n" {
				t.Errorf("it ended with %v and said %q", e, r.stderr)
			}
			c := f.containers[guid]
			has := func(path string) bool {
				file, err := rootfs.Open(c.root, path)
				if err == nil {
					file.Close()
				}
				return err == nil
			}
			if strings.HasSuffix(rootFS, "latest") && (has("/gone") || has("/full/a") || !has("/full/b")) {
				t.Error("the upper layer does not hide what it should")
			}
			if strings.HasSuffix(rootFS, "other") && (!has("/gone") || !has("/full/a")) {
				t.Error("the lower layer is not whole")
			}
			// What one container writes, no other sees.
			if err := f.StreamIn(f.ctx, guid, "/", "root", bytes.NewReader(tarOf(entry{name: "mine", content: "x", mode: 0o644}))); err != nil {
				t.Error(err)
			}
			other, _ := f.create(func(c *executor.ContainerSpec) { c.RootFS = rootFS })
			if _, err := f.StreamOut(f.ctx, other, "/mine", "root"); !errors.Is(err, executor.ErrNoFile) {
				t.Errorf("its neighbour sees its file: %v", err)
			}
		})
	}
}

func TestARootFileSystemThatCannotBeUsedSaysWhy(t *testing.T) {
	images := t.TempDir()
	f := newFixture(t, func(o *Options) { o.ImageDirs = []string{images} })
	if err := os.Symlink("/etc", filepath.Join(images, "out")); err != nil {
		t.Fatal(err)
	}
	write := func(name string, b []byte) {
		if err := os.WriteFile(filepath.Join(images, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("broken.tar", []byte(strings.Repeat("not a tar", 1000)))
	write("climbs.tar", tarOf(entry{name: "../../evil", content: "x"}))
	write("through.tar", tarOf(entry{name: "l", link: "/../../../.."}, entry{name: "l/tmp/evil-through-a-link", content: "x"}))
	l := newLayout(t, filepath.Join(images, "layout"))
	good := l.image("good", zipped(tarOf(entry{name: "a", content: "x"})))
	forged := l.image("forged", []byte("x"))
	blob := zipped(tarOf(entry{name: "b", content: "x"}))
	// The manifest names a layer whose content is another.
	digest := l.blob([]byte("promised"))
	if err := os.WriteFile(filepath.Join(l.dir, "blobs/sha256", strings.TrimPrefix(digest, "sha256:")), blob, 0o644); err != nil {
		t.Fatal(err)
	}
	manifest := l.json(map[string]any{"layers": []map[string]any{{"digest": digest}}})
	forged["digest"] = l.blob(manifest)
	strange := map[string]any{"digest": "sha256:../../../../etc/passwd", "annotations": map[string]string{rootfs.RefName: "strange"}}
	foreign := l.image("foreign", blob)
	foreign["platform"] = map[string]string{"os": "linux", "architecture": "not-" + runtime.GOARCH}
	zstd := l.image("zstd", []byte{0x28, 0xb5, 0x2f, 0xfd, 0})
	l.index(good, forged, strange, foreign, zstd)

	for _, test := range []struct {
		rootFS string
		kind   error
	}{
		{"", executor.ErrNoRootFS},
		{"nothing", executor.ErrNoRootFS},
		{"preloaded:unknown", executor.ErrNoRootFS},
		{"docker:///image", executor.ErrUnsupported},
		{"dir://" + images + "/no-such", executor.ErrNoRootFS},
		{"dir:relative", executor.ErrNoRootFS},
		{"dir:///etc", executor.ErrNoRootFS},
		{"dir:///", executor.ErrNoRootFS},
		{"dir://" + images + "/out", executor.ErrNoRootFS},
		{"dir://" + images + "/../", executor.ErrNoRootFS},
		{"dir://host" + images, executor.ErrNoRootFS},
		{"tar://" + images + "/layout", executor.ErrNoRootFS},
		{"dir://" + images + "/broken.tar", executor.ErrNoRootFS},
		{"tar://" + images + "/broken.tar", executor.ErrNoRootFS},
		{"tar://" + images + "/climbs.tar", executor.ErrUnsafeArchive},
		{"oci://" + images, executor.ErrNoRootFS},
		{"oci://" + images + "/layout", executor.ErrNoRootFS},
		{"oci://" + images + "/layout#none", executor.ErrNoRootFS},
		{"oci://" + images + "/layout#forged", executor.ErrNoRootFS},
		{"oci://" + images + "/layout#foreign", executor.ErrNoRootFS},
		{"oci://" + images + "/layout#strange", executor.ErrUnsupported},
		{"oci://" + images + "/layout#zstd", executor.ErrUnsupported},
	} {
		_, err := f.Create(f.ctx, f.spec(func(c *executor.ContainerSpec) { c.RootFS = test.rootFS }))
		var typed *executor.BackendError
		if !errors.Is(err, test.kind) || !errors.As(err, &typed) || typed.Detail == "" {
			t.Errorf("%q: %v, want %v", test.rootFS, err, test.kind)
		}
	}
	if got := traces(t, f.Backend); len(got) != 1 {
		t.Errorf("left behind: %q", got)
	}
	// A link of an image may lead anywhere: within the image.
	f.create(func(c *executor.ContainerSpec) { c.RootFS = "tar://" + images + "/through.tar" })
	if _, err := os.Stat("/tmp/evil-through-a-link"); err == nil {
		t.Error("an archive has written outside")
	}
	parts, err := filepath.Glob(filepath.Join(f.options.Dir, imagesDir, "*/*.part"))
	if err != nil || len(parts) != 0 {
		t.Errorf("half an image is left: %q, %v", parts, err)
	}
}
