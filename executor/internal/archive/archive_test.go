package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

func file(t testing.TB, content []byte) *os.File {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "archive"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if _, err := f.Write(content); err != nil {
		t.Fatal(err)
	}
	return f
}

func tarOf(headers ...tar.Header) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		w.WriteHeader(&h)
		io.CopyN(w, zeros{}, h.Size)
	}
	w.Close()
	return b.Bytes()
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func gz(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write(content)
	w.Close()
	return b.Bytes()
}

type zipped struct {
	name, content string
	mode          fs.FileMode
}

func zipOf(entries ...zipped) []byte {
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for _, e := range entries {
		h := &zip.FileHeader{Name: e.name, Method: zip.Deflate}
		h.SetMode(e.mode)
		f, err := w.CreateHeader(h)
		if err == nil {
			io.WriteString(f, e.content)
		}
	}
	w.Close()
	return b.Bytes()
}

func regular(name string, size int64) tar.Header {
	return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o4755, Size: size}
}

// tree is what an archive makes of a directory: names with permissions, sizes
// and targets.
func tree(t testing.TB, content []byte, format archive.Format, l archive.Limits) (string, error) {
	t.Helper()
	dir := t.TempDir()
	root, err := tenant.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	r, w := io.Pipe()
	source := file(t, content)
	go func() { w.CloseWithError(archive.Normalize(t.Context(), w, source, format, l, nil)) }()
	err = archive.Extract(t.Context(), root, "/a/b", r, -1, -1)
	r.Close()
	var lines []string
	filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		info, infoErr := d.Info()
		if infoErr != nil {
			return infoErr
		}
		name, _ := filepath.Rel(dir, path)
		switch {
		case info.Mode().IsRegular():
			lines = append(lines, strings.Join([]string{name, info.Mode().String(), strings.Repeat("x", int(min(info.Size(), 9)))}, " "))
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			lines = append(lines, name+" -> "+target)
		}
		return nil
	})
	return strings.Join(lines, "\n"), err
}

func TestEveryFormatIsRecognizedAndExtracted(t *testing.T) {
	plain := tarOf(tar.Header{Name: "./bin/", Typeflag: tar.TypeDir, Mode: 0o755}, regular("./bin/app", 3),
		tar.Header{Name: "./link", Typeflag: tar.TypeSymlink, Linkname: "bin/app"})
	const want = "a/b/bin/app -rwxr-xr-x xxx\na/b/link -> bin/app"
	for _, test := range []struct {
		name    string
		content []byte
		format  archive.Format
	}{
		{"tar", plain, archive.Tar}, {"tgz", gz(plain), archive.TGZ},
		{"zip", zipOf(zipped{"bin/app", "abc", 0o755}, zipped{"link", "bin/app", fs.ModeSymlink | 0o777}), archive.Zip},
	} {
		for _, format := range []archive.Format{test.format, archive.Detect} {
			got, err := tree(t, test.content, format, archive.Limits{})
			if err != nil || got != want {
				t.Errorf("%s as %q:\n%s\n%v", test.name, format, got, err)
			}
		}
	}
}

func TestAnAttackIsRefusedAndLeavesNothingOutside(t *testing.T) {
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	hard := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeLink, Linkname: target}
	}
	tests := map[string][]byte{
		"a name that climbs":                   tarOf(regular("../evil", 1)),
		"a name that climbs in the middle":     tarOf(regular("a/../../evil", 1)),
		"an absolute name":                     tarOf(regular("/tmp/evil", 1)),
		"a link that climbs":                   tarOf(link("l", "../../x")),
		"an absolute link":                     tarOf(link("l", "/etc")),
		"a link to nothing":                    tarOf(link("l", "")),
		"a hard link that climbs":              tarOf(hard("h", "../../x")),
		"a hard link to an absolute name":      tarOf(hard("h", "/etc/passwd")),
		"a device":                             tarOf(tar.Header{Name: "d", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}),
		"a fifo":                               tarOf(tar.Header{Name: "f", Typeflag: tar.TypeFifo}),
		"a chain of links that climbs by name": tarOf(link("d/l", "../.."), regular("d/l/evil", 1)),
		"a zip whose name climbs":              zipOf(zipped{"../evil", "x", 0o644}),
		"a zip whose link climbs":              zipOf(zipped{"l", "../../x", fs.ModeSymlink | 0o777}),
		"a zip with a device":                  zipOf(zipped{"d", "", fs.ModeDevice | 0o644}),
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			left, err := tree(t, content, archive.Detect, archive.Limits{})
			if !errors.Is(err, executor.ErrUnsafeArchive) {
				t.Errorf("the error is %v", err)
			}
			if left != "" {
				t.Errorf("it left %s", left)
			}
		})
	}
}

// A link within the archive that leads out only through another link is not
// seen by its text; writing through it is refused all the same.
func TestNothingIsWrittenThroughALinkThatLeadsOut(t *testing.T) {
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: target}
	}
	content := tarOf(tar.Header{Name: "x/y/", Typeflag: tar.TypeDir, Mode: 0o755}, link("x/y/up", "../.."), link("out", "x/y/up/.."),
		link("further", "out/.."), link("away", "further/.."), link("far", "away/.."), regular("far/evil", 1))
	left, err := tree(t, content, archive.Detect, archive.Limits{})
	if err == nil {
		t.Error("it was accepted")
	}
	if strings.Contains(left, "evil") {
		t.Errorf("it left %s", left)
	}
}

func TestABombIsRefused(t *testing.T) {
	limits := archive.Limits{MaxContentBytes: 1 << 20, MaxContentEntries: 10}
	var many []tar.Header
	var manyOfAZip []zipped
	for range 11 {
		many = append(many, regular("f", 0))
		manyOfAZip = append(manyOfAZip, zipped{"f", "", 0o644})
	}
	for name, content := range map[string][]byte{
		"a large file in a small tgz":      gz(tarOf(regular("bomb", 4<<20))),
		"a large file in a small zip":      zipOf(zipped{"bomb", strings.Repeat("\x00", 4<<20), 0o644}),
		"many files that are large at all": gz(tarOf(regular("a", 1<<19), regular("b", 1<<19), regular("c", 1))),
		"many entries":                     tarOf(many...),
		"many entries of a zip":            zipOf(manyOfAZip...),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := tree(t, content, archive.Detect, limits); !errors.Is(err, archive.ErrTooLarge) {
				t.Errorf("the error is %v", err)
			}
		})
	}
}

func TestWhatIsNoArchiveIsAnError(t *testing.T) {
	for name, content := range map[string][]byte{
		"nothing": nil, "text": []byte("hello"), "half a tar": tarOf(regular("a", 1000))[:700], "half a tgz": gz(tarOf(regular("a", 1000)))[:30],
	} {
		if _, err := tree(t, content, archive.Detect, archive.Limits{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := tree(t, nil, "rar", archive.Limits{}); err == nil {
		t.Error("an unknown format: no error")
	}
}

func TestAFileReplacesALinkAndIsNotWrittenThroughIt(t *testing.T) {
	dir := t.TempDir()
	root, err := tenant.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	outside := filepath.Join(t.TempDir(), "secret")
	os.WriteFile(outside, []byte("untouched"), 0o600)
	os.Symlink(outside, filepath.Join(dir, "f"))
	if err := archive.Extract(t.Context(), root, ".", bytes.NewReader(tarOf(regular("f", 3))), -1, -1); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(outside); string(text) != "untouched" {
		t.Errorf("the file outside is %q", text)
	}
	if info, _ := os.Lstat(filepath.Join(dir, "f")); !info.Mode().IsRegular() {
		t.Errorf("f is %v", info.Mode())
	}
}

func TestAFileThatIsCutOffIsNotPlaced(t *testing.T) {
	dir := t.TempDir()
	root, err := tenant.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	os.WriteFile(filepath.Join(dir, "old"), []byte("whole"), 0o600)
	stream := tarOf(regular("f", 5000))
	for _, name := range []string{"old", "new"} {
		if err := archive.Place(t.Context(), root, name, bytes.NewReader(stream[:3000]), archive.Limits{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	var at *fs.PathError
	large := tarOf(regular(strings.Repeat("n", 300), 1)) // longer than a name may be
	if err := archive.Place(t.Context(), root, ".", bytes.NewReader(large), archive.Limits{}); !errors.As(err, &at) || strings.Contains(err.Error(), ".diego-copy-") {
		t.Errorf("a name that is too long: %v", err)
	}
	list, _ := os.ReadDir(dir)
	if text, _ := os.ReadFile(filepath.Join(dir, "old")); string(text) != "whole" || len(list) != 1 {
		t.Errorf("the old file is %.20q, and there are %v", text, list)
	}
	if err := archive.Place(t.Context(), root, "old", bytes.NewReader(stream), archive.Limits{}); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "old")); err != nil || info.Size() != 5000 {
		t.Errorf("the new file is %v, %v", info, err)
	}
}

func FuzzNormalizeNeverWritesAnUnsafeName(f *testing.F) {
	f.Add(tarOf(regular("a", 1)))
	f.Add(gz(tarOf(regular("../a", 1))))
	f.Add(zipOf(zipped{"a/b", "c", 0o644}, zipped{"l", "a", fs.ModeSymlink | 0o777}))
	f.Fuzz(func(t *testing.T, content []byte) {
		var out bytes.Buffer
		if archive.Normalize(t.Context(), &out, file(t, content), archive.Detect, archive.Limits{MaxContentBytes: 1 << 16, MaxContentEntries: 100}, nil) != nil {
			return
		}
		in := tar.NewReader(&out)
		for {
			h, err := in.Next()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !filepath.IsLocal(h.Name) {
				t.Errorf("the name %q came through", h.Name)
			}
		}
	})
}
