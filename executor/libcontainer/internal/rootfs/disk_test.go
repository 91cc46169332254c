//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/internal/testenv"
)

// After a power cut, a template may have no size, or only a part of its content.
func TestADiskIsMadeAlthoughAPowerCutHasSpoiltItsTemplate(t *testing.T) {
	testenv.Root(t)
	mkfs, err := exec.LookPath("mkfs.ext4")
	if err != nil {
		t.Fatal(err)
	}
	const megabytes = 16
	for name, spoil := range map[string]func(d *disks) error{
		"empty": func(d *disks) error {
			path := d.templatePath(megabytes)
			return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, megabytes<<20))
		},
		"without a size": func(d *disks) error { return os.WriteFile(d.templatePath(megabytes), nil, 0o600) },
		"a directory":    func(d *disks) error { return os.MkdirAll(filepath.Join(d.templatePath(megabytes), "file"), 0o700) },
		"a superblock that is not that of its checksum": func(d *disks) error {
			template, err := d.template(t.Context(), megabytes)
			if err != nil {
				return err
			}
			defer template.Close()
			file, err := os.OpenFile(template.Name(), os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			const label = 1024 + 120
			_, err = file.WriteAt([]byte("spoilt"), label)
			return errors.Join(err, file.Close())
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := disks{dir: t.TempDir(), mkfs: mkfs}
			if err := spoil(&d); err != nil {
				t.Fatal(err)
			}
			dir, at := t.TempDir(), t.TempDir()
			for _, name := range []string{"first", "second"} {
				if err := d.mount(t.Context(), megabytes, filepath.Join(dir, name), at); err != nil {
					t.Fatalf("the %s disk: %v", name, err)
				}
				if err := errors.Join(os.WriteFile(filepath.Join(at, "file"), nil, 0o600), unix.Unmount(at, 0)); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

func TestTheOldestTemplatesMakeRoomForNewOnes(t *testing.T) {
	mkfs, err := exec.LookPath("true")
	if err != nil {
		t.Fatal(err)
	}
	d := disks{dir: t.TempDir(), mkfs: mkfs}
	const sizes = maxTemplates + 5
	for i := range int64(sizes) {
		f, err := d.template(t.Context(), sizes-i)
		if err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := os.Chtimes(f.Name(), time.Time{}, time.Unix(i, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for megabytes := int64(1); megabytes <= sizes; megabytes++ {
		_, err := os.Stat(d.templatePath(megabytes))
		if kept := err == nil; kept != (megabytes <= maxTemplates) {
			t.Errorf("the template of %d MiB is kept: %v", megabytes, kept)
		}
	}
}
