//go:build linux

package rootfs

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/executor/internal/tenant"
)

func TestImagesThatWereUnpackedBeforeTheHostBootedAreSetAside(t *testing.T) {
	for name, makeTrash := range map[string]func(string) error{
		"set aside":                         func(string) error { return nil },
		"removed if it cannot be set aside": func(dir string) error { return os.WriteFile(dir, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir, trash := t.TempDir(), tenant.Trash{Dir: filepath.Join(t.TempDir(), "lost")}
			if err := makeTrash(trash.Dir); err != nil {
				t.Fatal(err)
			}
			current, err := OfThisBoot(dir, trash)
			if err != nil {
				t.Fatal(err)
			}
			kept := filepath.Join(current, "image")
			for _, made := range []string{kept, filepath.Join(dir, "boot-of-yesterday", "image"), filepath.Join(dir, "of-an-earlier-release")} {
				if err := os.MkdirAll(made, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			again, err := OfThisBoot(dir, trash)
			if err != nil || again != current {
				t.Errorf("the same boot has %s and %s, %v", current, again, err)
			}
			if _, err := os.Stat(kept); err != nil {
				t.Errorf("an image of this boot: %v", err)
			}
			if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
				t.Errorf("there are %v, %v", entries, err)
			}
		})
	}
}
