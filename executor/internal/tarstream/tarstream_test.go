package tarstream

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

var errGone = &executor.BackendError{Kind: executor.ErrNoContainer, GUID: "c"}

// place is a directory with a file of a size.
func place(t *testing.T, path string, size int) Place {
	t.Helper()
	return placeIn(t, t.TempDir(), path, size)
}

func placeIn(t *testing.T, dir, path string, size int) Place {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "file"), make([]byte, size), 0o644); err != nil {
		t.Fatal(err)
	}
	root, err := tenant.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	return Place{root, path, "/as/named"}
}

func here() error { return nil }

func TestWhatGoesOutComesInAgain(t *testing.T) {
	c := Container{"c", here}
	dir := t.TempDir()
	from, to := place(t, "file", 100_000), placeIn(t, dir, "sub", 0)
	out, err := c.Out(context.Background(), from)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.In(context.Background(), to, out, -1, -1); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(filepath.Join(dir, "sub", "file")); err != nil || info.Size() != 100_000 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := to.Root.Lstat("."); !errors.Is(err, fs.ErrClosed) {
		t.Errorf("the root is open: %v", err)
	}
}

func TestAFileThatIsNotThereIsAnErrorBeforeTheStream(t *testing.T) {
	c := Container{"c", here}
	_, err := c.Out(context.Background(), place(t, "none", 0))
	var named *executor.BackendError
	if !errors.Is(err, executor.ErrNoFile) || !errors.As(err, &named) || named.GUID != "c" || named.Detail != "/as/named" {
		t.Errorf("the error is %#v", err)
	}
}

func TestAFileThatIsCutOffWhileItIsReadIsRefused(t *testing.T) {
	dir := t.TempDir()
	out, err := Container{"c", here}.Out(context.Background(), placeIn(t, dir, "file", 1<<20))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := os.Truncate(filepath.Join(dir, "file"), 10); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, out); !errors.Is(err, executor.ErrFileRefused) {
		t.Errorf("the error is %v", err)
	}
}

func TestAStreamEndsWithItsContainerAndItsContext(t *testing.T) {
	var entry bytes.Buffer
	w := tar.NewWriter(&entry)
	if err := w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "endless", Mode: 0o644, Size: 1 << 40}); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		end  func(gone *atomic.Bool, cancel func())
		want error
	}{
		{"its container", func(gone *atomic.Bool, _ func()) { gone.Store(true) }, executor.ErrNoContainer},
		{"its context", func(_ *atomic.Bool, cancel func()) { cancel() }, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			var gone atomic.Bool
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			c := Container{"c", func() error {
				if gone.Load() {
					return errGone
				}
				return nil
			}}
			out, err := c.Out(ctx, place(t, "file", 1<<20))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			content := readerFunc(func(p []byte) (int, error) { // a while later
				test.end(&gone, cancel)
				clear(p)
				return len(p), nil
			})
			if err := c.In(ctx, place(t, ".", 0), io.MultiReader(bytes.NewReader(entry.Bytes()), content), -1, -1); !errors.Is(err, test.want) {
				t.Errorf("in: %v, want %v", err, test.want)
			}
			if _, err := io.Copy(io.Discard, out); !errors.Is(err, test.want) {
				t.Errorf("out: %v, want %v", err, test.want)
			}
		})
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestAnErrorSaysOfWhichContainerItIs(t *testing.T) {
	c := Container{GUID: "c"}
	other := errors.New("other")
	for _, test := range []struct{ err, kind error }{
		{executor.ErrUnsafeArchive, executor.ErrUnsafeArchive},
		{executor.ErrNoFile, executor.ErrNoFile},
		{errGone, executor.ErrNoContainer},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, executor.ErrFileRefused},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}, fs.ErrPermission},
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, executor.ErrFileRefused},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.EAGAIN}, executor.ErrFileRefused},
		{fmt.Errorf("x: %w", archive.ErrTooLarge), executor.ErrFileRefused},
		{fmt.Errorf("x changed while it was read: %w", io.EOF), executor.ErrFileRefused},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENOTDIR}, executor.ErrFileRefused},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ELOOP}, executor.ErrFileRefused},
		{&fs.PathError{Op: "open", Path: "x", Err: syscall.ENAMETOOLONG}, executor.ErrFileRefused},
		{fs.ErrExist, executor.ErrFileRefused},
		{fmt.Errorf("x %w", tenant.ErrChanged), executor.ErrFileRefused},
		{other, other},
	} {
		if got := c.Err(test.err, "name"); !errors.Is(got, test.kind) || got == test.kind {
			t.Errorf("%v becomes %v", test.err, got)
		}
	}
	if err := c.Err(nil, "name"); err != nil {
		t.Errorf("nothing becomes %v", err)
	}
}
