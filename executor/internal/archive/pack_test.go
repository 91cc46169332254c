//go:build unix

package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
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
	if err := archive.Pack(context.Background(), root, name, &b); err != nil {
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
	if err := archive.Pack(context.Background(), root, "home", &b); err != nil {
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

// names makes so many names of one file in a directory.
func names(t *testing.T, dir string, n int) {
	t.Helper()
	first := filepath.Join(dir, "0")
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(first, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < n; i++ {
		if err := os.Link(first, filepath.Join(dir, strconv.Itoa(i))); err != nil {
			t.Fatal(err)
		}
	}
}

// A countingWriter measures the heap after so many writes.
type countingWriter struct {
	writes, at int
	heap       uint64
}

func (w *countingWriter) Write(p []byte) (int, error) {
	if w.writes++; w.writes == w.at {
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		w.heap = now.HeapAlloc
	}
	return len(p), nil
}

func TestALargeDirectoryIsPackedAsItIsRead(t *testing.T) {
	dir, root := container(t)
	names(t, filepath.Join(dir, "few"), 100)
	const many = 10_000
	names(t, filepath.Join(dir, "many"), many)
	few, lots := countingWriter{at: 50}, countingWriter{at: 50}
	if err := errors.Join(archive.Pack(context.Background(), root, "few", &few), archive.Pack(context.Background(), root, "many", &lots)); err != nil {
		t.Fatal(err)
	}
	if lots.writes < many {
		t.Errorf("%d names made %d writes", many, lots.writes)
	}
	if more := int64(lots.heap) - int64(few.heap); more > many*50 {
		t.Errorf("%d names take %d bytes", many, more)
	}
}

func TestDepthCostsNoDescriptors(t *testing.T) {
	dir, root := container(t)
	deep := strings.Repeat("d/", archive.MaxDepth-1) + "e"
	if err := os.MkdirAll(filepath.Join(dir, "deep", deep), 0o755); err != nil {
		t.Fatal(err)
	}
	count := func() int {
		entries, err := os.ReadDir("/dev/fd")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	before, most := count(), 0
	err := archive.Pack(context.Background(), root, "deep/d", writerFunc(func(p []byte) (int, error) {
		most = max(most, count())
		return len(p), nil
	}))
	if err != nil || most > before+3 {
		t.Errorf("%v; %d descriptors instead of %d", err, most, before)
	}
	if err := archive.Pack(context.Background(), root, "deep", io.Discard); !errors.Is(err, archive.ErrTooLarge) || !strings.Contains(err.Error(), "deeper than 256 directories") {
		t.Errorf("a level more: %v", err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestLargeDirectoriesWithinEachOtherAreBounded(t *testing.T) {
	dir, root := container(t)
	for at, n := filepath.Join(dir, "large"), 0; n < 20; at, n = filepath.Join(at, "d"), n+1 {
		names(t, at, 1030) // so that nearly every one still holds names when its subdirectory is met
	}
	err := archive.Pack(context.Background(), root, "large", io.Discard)
	if !errors.Is(err, archive.ErrTooLarge) || !strings.Contains(err.Error(), "more than 16 directories") {
		t.Errorf("the error is %v", err)
	}
	if got, err := packed(root, "large"+strings.Repeat("/d", 18)); err != nil || len(got) != 2*1031 {
		t.Errorf("%d entries, %v", len(got), err)
	}
}

func TestPackSaysThatAFileChangedOnlyIfItBecameShorter(t *testing.T) {
	broken := errors.New("the disk is broken")
	for _, test := range []struct {
		name    string
		write   func(p []byte, file string) error
		want    error
		changed bool
	}{
		{"shorter", func(_ []byte, file string) error { return os.Truncate(file, 1) }, io.EOF, true}, // beside its header
		{"broken", func(p []byte, _ string) error {
			if string(p) == "#!" { // the content
				return broken
			}
			return nil
		}, broken, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir, root := container(t)
			err := archive.Pack(t.Context(), root, "/home/app/run", writerFunc(func(p []byte) (int, error) {
				if err := test.write(p, filepath.Join(dir, "home/app/run")); err != nil {
					return 0, err
				}
				return len(p), nil
			}))
			if !errors.Is(err, test.want) || errors.Is(err, tenant.ErrChanged) != test.changed {
				t.Errorf("the error is %v", err)
			}
		})
	}
}
