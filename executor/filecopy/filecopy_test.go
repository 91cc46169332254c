package filecopy_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/filecopy"
)

func archiveOf(list ...tar.Header) *bytes.Buffer {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range list {
		h.Mode = 0o755
		if h.Typeflag == tar.TypeReg {
			h.Size = 4
		}
		_ = w.WriteHeader(&h)
		if h.Typeflag == tar.TypeReg {
			_, _ = w.Write([]byte("evil"))
		}
	}
	_ = w.Close()
	return &b
}

func file(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
func dir(name string) tar.Header  { return tar.Header{Typeflag: tar.TypeDir, Name: name + "/"} }
func link(name, to string) tar.Header {
	return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to}
}

func names(t *testing.T, dir string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if path != dir {
			name, _ := filepath.Rel(dir, path)
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func TestAHostileArchiveWritesNothingAnywhere(t *testing.T) {
	for name, archive := range map[string]*bytes.Buffer{
		"above":                 archiveOf(file("../evil")),
		"absolute":              archiveOf(dir("x"), file("/evil")),
		"through a link at top": archiveOf(link("x", ".."), file("x/evil")),
		"by a hard link":        archiveOf(dir("x"), tar.Header{Typeflag: tar.TypeLink, Name: "x/evil", Linkname: "../../secret"}),
		"beside":                archiveOf(dir("x"), file("y")),
		"nothing":               archiveOf(),
		"too many entries":      archiveOf(dir("x"), file("x/1"), file("x/2"), file("x/3"), file("x/4")),
		"too many bytes":        archiveOf(dir("x"), file("x/1"), file("x/2"), file("x/3")),
		"cut off":               bytes.NewBuffer(archiveOf(file("x")).Bytes()[:514]),
	} {
		whole := t.TempDir()
		target := filepath.Join(whole, "in")
		if err := errors.Join(os.Mkdir(target, 0o755), os.WriteFile(filepath.Join(whole, "secret"), []byte("good"), 0o600)); err != nil {
			t.Fatal(err)
		}
		err := filecopy.Receive(t.Context(), archive, target, "copy", filecopy.Limits{MaxBytes: 8, MaxEntries: 4})
		if err == nil {
			t.Errorf("%s: it is accepted", name)
		}
		if got := strings.Join(names(t, whole), " "); got != "in secret" {
			t.Errorf("%s: there is %s, after %v", name, got, err)
		}
		if got, _ := os.ReadFile(filepath.Join(whole, "secret")); string(got) != "good" {
			t.Errorf("%s: the secret is %q", name, got)
		}
	}
}

// A link leads nowhere but to what is thrown away.
func TestAnArchiveWritesNothingThroughItsLinks(t *testing.T) {
	for _, to := range []string{"..", "../..", "/", "../../in"} {
		whole := t.TempDir()
		if err := os.Mkdir(filepath.Join(whole, "in"), 0o755); err != nil {
			t.Fatal(err)
		}
		err := filecopy.Receive(t.Context(), archiveOf(dir("x"), link("x/out", to), file("x/out/evil")), filepath.Join(whole, "in"), "copy", filecopy.Limits{})
		for _, name := range names(t, whole) {
			if strings.Contains(name, "evil") {
				t.Errorf("a link to %s: there is %s, after %v", to, name, err)
			}
		}
	}
}

func TestACopyArrivesAsItIsSent(t *testing.T) {
	here := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(here, "tree/a"), 0o755), os.WriteFile(filepath.Join(here, "tree/a/b"), []byte("deep"), 0o640),
		os.Symlink("a/b", filepath.Join(here, "tree/link")), os.Mkdir(filepath.Join(here, "into"), 0o755)); err != nil {
		t.Fatal(err)
	}
	send := func(path string) *bytes.Buffer {
		t.Helper()
		var b bytes.Buffer
		if err := filecopy.Send(t.Context(), &b, filepath.Join(here, path)); err != nil {
			t.Fatal(err)
		}
		return &b
	}
	receive := func(b *bytes.Buffer, path, name string) error {
		return filecopy.Receive(t.Context(), b, filepath.Join(here, path), name, filecopy.Limits{})
	}
	if err := errors.Join(receive(send("tree"), "into", "kept"), receive(send("tree"), "renamed", "kept"), receive(send("tree/a/b"), "file", "b")); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"into/kept/a/b", "into/kept/link", "renamed/a/b", "file"} {
		if got, err := os.ReadFile(filepath.Join(here, path)); err != nil || string(got) != "deep" {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	if err := receive(archiveOf(file("new")), "file", "x"); err != nil {
		t.Errorf("a file is not replaced: %v", err)
	}
	if err := receive(archiveOf(dir("kept"), dir("kept/a"), file("kept/a/b"), dir("kept/new"), file("kept/new/er")), "into", "kept"); err != nil {
		t.Errorf("into a directory of its name: %v", err)
	}
	for path, want := range map[string]string{"into/kept/a/b": "evil", "into/kept/new/er": "evil"} {
		if got, err := os.ReadFile(filepath.Join(here, path)); err != nil || string(got) != want {
			t.Errorf("merged, %s: %q, %v", path, got, err)
		}
	}
	if got, err := os.Readlink(filepath.Join(here, "into/kept/link")); err != nil || got != "a/b" {
		t.Errorf("merged, what was there is %q, %v", got, err)
	}
	for name, archive := range map[string]*bytes.Buffer{
		"a file over a directory":        archiveOf(file("kept")),
		"a file over a directory, below": archiveOf(dir("kept"), file("kept/0"), file("kept/a")),
		"a directory over a file, below": archiveOf(dir("kept"), file("kept/0"), dir("kept/a"), dir("kept/a/b")),
		"a directory over a link":        archiveOf(dir("kept"), file("kept/0"), dir("kept/link"), file("kept/link/x")),
	} {
		before := names(t, here)
		if err := receive(archive, "into", "kept"); !errors.Is(err, fs.ErrExist) {
			t.Errorf("%s: %v", name, err)
		}
		if after := names(t, here); !slices.Equal(after, before) {
			t.Errorf("%s leaves %q", name, after)
		}
	}
	if err := receive(send("tree"), "file", "x"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a directory over a file: %v", err)
	}
	for _, path := range []string{"missing/", "file/"} {
		if err := filecopy.Receive(t.Context(), archiveOf(file("x")), here+"/"+path, "x", filecopy.Limits{}); err == nil {
			t.Errorf("to %s: it is accepted", path)
		}
	}
	for _, name := range []string{".", "..", "a/b", ""} {
		if err := receive(send("tree"), "into", name); err == nil {
			t.Errorf("the name %q is accepted", name)
		}
	}
	if err := receive(send("tree"), "nowhere/x", "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("into no directory: %v", err)
	}
	var b bytes.Buffer
	if err := filecopy.Send(t.Context(), &b, filepath.Join(here, "nothing")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of nothing: %v", err)
	}
	if err := filecopy.Send(t.Context(), &b, "/"); err == nil {
		t.Error("the root has no name")
	}
	if err := receive(archiveOf(dir("x"), file("x/../../evil")), "y", "x"); !errors.Is(err, executor.ErrUnsafeArchive) {
		t.Errorf("a name that leads out: %v", err)
	}
	if err := receive(archiveOf(dir("."), file("x")), "y", "x"); !errors.Is(err, executor.ErrUnsafeArchive) || !strings.Contains(err.Error(), "without a name") {
		t.Errorf("a directory without a name: %v", err)
	}
}
