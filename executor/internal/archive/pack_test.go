//go:build unix

package archive_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// container is a directory with a little of everything.
func container(t *testing.T) (string, *tenant.Root) {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.MkdirAll(filepath.Join(dir, "home/app/empty"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "home/app/run"), []byte("#!"), 0o755))
	must(os.Symlink("run", filepath.Join(dir, "home/app/link")))
	must(os.Symlink("/etc/passwd", filepath.Join(dir, "home/app/out")))
	must(os.Symlink("app/run", filepath.Join(dir, "home/inside")))
	must(syscall.Mkfifo(filepath.Join(dir, "home/app/fifo"), 0o644))
	root, err := tenant.OpenRoot(dir)
	must(err)
	t.Cleanup(func() { root.Close() })
	return dir, root
}

func packed(root *tenant.Root, name string) (map[string]string, error) {
	var b bytes.Buffer
	if err := archive.Pack(root, name, &b); err != nil {
		return nil, err
	}
	found := map[string]string{}
	in := tar.NewReader(&b)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		found[h.Name] = string(content)
		if h.Typeflag == tar.TypeSymlink {
			found[h.Name] = "-> " + h.Linkname
		}
	}
}

func TestPackWritesWhatIsThereAndFollowsNoLinkOut(t *testing.T) {
	_, root := container(t)
	tests := []struct {
		name string
		want map[string]string
	}{
		{"/home/app", map[string]string{"app/": "", "app/empty/": "", "app/run": "#!", "app/link": "-> run", "app/out": "-> /etc/passwd"}},
		{"home/app/run", map[string]string{"run": "#!"}},
		{"/home/../../home/inside", map[string]string{"inside": "#!"}},
	}
	for _, test := range tests {
		got, err := packed(root, test.name)
		if diff := cmp.Diff(test.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", test.name, err, diff)
		}
	}
	for _, name := range []string{"/missing", "/home/app/out", "/home/app/fifo", "/home/app/run/below"} {
		if _, err := packed(root, name); err == nil || regexp.MustCompile(`\b(stat|open|readlink)at\b`).MatchString(err.Error()) {
			t.Errorf("%s: %v, want the usual name of what failed", name, err)
		}
		if got, err := packed(root, name); !errors.Is(err, executor.ErrNoFile) && !errors.Is(err, syscall.ENOTDIR) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

func TestWhatIsPackedIsExtractedTheSame(t *testing.T) {
	dir, root := container(t)
	os.Remove(filepath.Join(dir, "home/app/out"))
	want, err := packed(root, "home")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := archive.Pack(root, "home", &b); err != nil {
		t.Fatal(err)
	}
	copyDir, err := tenant.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer copyDir.Close()
	if err := archive.Extract(t.Context(), copyDir, "/", &b, os.Getuid(), os.Getgid()); err != nil {
		t.Fatal(err)
	}
	got, err := packed(copyDir, "home")
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-packed +extracted):\n%s", err, diff)
	}
}

func TestHardLinksAndReplacementsStayInTheArchive(t *testing.T) {
	content := tarOf(
		tar.Header{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o000}, // its owner can fill it all the same
		regular("d/a", 2),
		tar.Header{Name: "d/b", Typeflag: tar.TypeLink, Linkname: "d/a"},
		regular("d/a", 3),
		tar.Header{Name: "e", Typeflag: tar.TypeSymlink, Linkname: "d"},
		regular("e", 1),
	)
	got, err := tree(t, content, archive.Tar, archive.Limits{})
	want := strings.Join([]string{"a/b/d/a -rwxr-xr-x xxx", "a/b/d/b -rwxr-xr-x xx", "a/b/e -rwxr-xr-x x"}, "\n")
	if got != want || err != nil {
		t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
	}
}
