//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
)

// dig makes a chain of directories.
func dig(dir string, depth int) string {
	return fmt.Sprintf(`cd %s && exec perl -e 'for (1..%d) { mkdir "d" or die "$_: $!"; chdir "d" or die $! }'`, dir, depth)
}

func TestDirectoriesOfAnyDepthAreDeletedWithAFewDescriptors(t *testing.T) {
	f := newFixture(t)
	depth := 3000
	if testing.Short() {
		depth = 600 // still more than an archive may have, and than there are descriptors
	}
	for _, disk := range []int64{0, 64} {
		guid, _ := f.create(func(c *executor.ContainerSpec) { c.Resources.DiskMB, c.Resources.MemoryMB = disk, 256 })
		for _, dir := range []string{"/tmp", "/dev/shm"} {
			if r := f.as("nobody", guid, dig(dir, depth)); !r.end().Success() {
				t.Fatalf("in %s: %s", dir, r.stderr)
			}
			// What is looked at on the way has its bounds, too.
			stream, err := f.StreamOut(f.ctx, guid, dir, "nobody")
			if err == nil {
				_, err = io.Copy(io.Discard, stream)
				stream.Close()
			}
			if !errors.Is(err, archive.ErrTooLarge) {
				t.Errorf("an upload of %s: %v", dir, err)
			}
			file := tarOf(entry{name: "d", content: "instead", mode: 0o644})
			if dir == "/dev/shm" {
				lessDescriptors(t, 200, func() {
					if err := f.StreamIn(f.ctx, guid, dir, "nobody", bytes.NewReader(file)); err != nil {
						t.Errorf("a download that replaces it: %v", err)
					}
				})
			}
		}
		lessDescriptors(t, 200, func() {
			if m, err := f.Usage(f.ctx, guid); err != nil || m.DiskBytes < 0 {
				t.Errorf("it uses %+v, %v", m, err)
			}
			f.delete(guid)
		})
		if left, err := f.Sweep(f.ctx); len(left) > 0 || err != nil {
			t.Errorf("set aside: %v, %v", left, err)
		}
	}
}

func TestADownloadReplacesADirectoryOfTheImage(t *testing.T) {
	eachIDs(t, func(t *testing.T, edit func(*Options)) {
		image := t.TempDir()
		if err := os.MkdirAll(filepath.Join(image, "app/a/b/c"), 0o755); err != nil {
			t.Fatal(err)
		}
		f := newFixture(t, edit, func(o *Options) { o.ImageDirs = []string{image} })
		guid, _ := f.create(func(c *executor.ContainerSpec) { c.RootFS = "dir:" + image })
		file := tarOf(entry{name: "app", content: "instead", mode: 0o644})
		if err := f.StreamIn(f.ctx, guid, "/", "root", bytes.NewReader(file)); err != nil {
			t.Error(err)
		}
	})
}

// lessDescriptors does something while this process can open few files more.
func lessDescriptors(t *testing.T, more uint64, do func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: uint64(costs(t).files) + more, Max: old.Max}); err != nil {
		t.Fatal(err)
	}
	defer unix.Setrlimit(unix.RLIMIT_NOFILE, &old)
	do()
}

func TestWhatCannotBeDeletedIsSetAsideUntilItCan(t *testing.T) {
	tests := map[string]struct{ spoil, mend func(path string) error }{
		"an immutable file": {
			func(path string) error {
				return errors.Join(os.WriteFile(path, make([]byte, 3<<20), 0o600), chattr(path, true))
			},
			func(path string) error { return chattr(path, false) },
		},
		"a mount": {
			func(path string) error {
				return errors.Join(os.Mkdir(path, 0o755), unix.Mount("none", path, "tmpfs", 0, ""))
			},
			func(path string) error { return unix.Unmount(path, 0) },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			guid, _ := f.create()
			c := f.containers[guid]
			const inside = "upper/tmp/spoilt"
			if err := errors.Join(os.MkdirAll(filepath.Join(c.dir, filepath.Dir(inside)), 0o755), test.spoil(filepath.Join(c.dir, inside))); err != nil {
				t.Fatal(err)
			}
			err := f.Delete(f.ctx, guid)
			if !errors.Is(err, executor.ErrSetAside) || len(err.Error()) > 400 {
				t.Errorf("the deletion ended with %v", err)
			}
			if all, err := f.List(f.ctx); len(all) > 0 || err != nil {
				t.Errorf("listed are %v, %v", all, err)
			}
			if err := f.Delete(f.ctx, guid); err != nil {
				t.Errorf("a second deletion: %v", err)
			}
			left, err := f.Sweep(f.ctx)
			if len(left) != 1 || err != nil || !strings.HasPrefix(filepath.Base(left[0].Path), guid+".") || left[0].Bytes == 0 || left[0].Err == nil {
				t.Fatalf("set aside are %+v, %v", left, err)
			}
			// Directories above it have been lifted.
			var spoilt []string
			err = filepath.WalkDir(left[0].Path, func(path string, d fs.DirEntry, err error) error {
				if err == nil && d.Name() == "spoilt" {
					spoilt = append(spoilt, path)
				}
				return err
			})
			if len(spoilt) != 1 {
				t.Fatalf("left is %q, %v", spoilt, err)
			}
			if err := test.mend(spoilt[0]); err != nil {
				t.Fatal(err)
			}
			if left, err := f.Sweep(f.ctx); len(left) > 0 || err != nil {
				t.Errorf("still set aside are %+v, %v", left, err)
			}
			if exists(f.trash().Dir) {
				t.Error("the directory for it is left")
			}
		})
	}
}

// A daemon that starts after another was killed does not wait for many files.
func TestTheFilesOfAnEarlierDaemonCanBeRemovedLater(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	o, dir := f.options, f.containers[guid].dir
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "upper/file"), make([]byte, 1<<20), 0o600), f.Close()); err != nil {
		t.Fatal(err)
	}
	f.Backend = openBackend(t, o)
	f.hurry.Limit = -time.Second
	if err := f.Delete(f.ctx, guid); !errors.Is(err, executor.ErrSetAside) {
		t.Errorf("the deletion ended with %v", err)
	}
	if all, err := f.List(f.ctx); len(all) > 0 || err != nil || exists(dir) {
		t.Errorf("listed are %v, %v", all, err)
	}
	if all, err := f.Aside(f.ctx); len(all) != 1 || err != nil || all[0].Bytes < 1<<20 {
		t.Errorf("set aside are %+v, %v", all, err)
	}
	if left, err := f.Sweep(f.ctx); len(left) > 0 || err != nil || exists(f.trash().Dir) {
		t.Errorf("left are %+v, %v", left, err)
	}
}

func chattr(path string, immutable bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const immutableFlag = 0x10
	flags, err := unix.IoctlGetUint32(int(f.Fd()), unix.FS_IOC_GETFLAGS)
	if flags &^= immutableFlag; immutable {
		flags |= immutableFlag
	}
	return errors.Join(err, unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, int(flags)))
}
