//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"os"
	"path/filepath"
	"sync"
	"testing"
)

func TestAnImageIsUnpackedOnceHoweverManyAsk(t *testing.T) {
	allowed := t.TempDir()
	all := images{dir: t.TempDir(), allowedDirs: []string{allowed}}
	path := filepath.Join(allowed, "image.tar")
	if err := os.WriteFile(path, tarOf(entry{name: "a", content: "x", mode: 0o644}), 0o644); err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			if _, err := all.find(t.Context(), "g", "tar://"+path); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	made, err := os.ReadDir(all.dir)
	if err != nil || len(made) != 1 {
		t.Errorf("there are %d images, %v", len(made), err)
	}
}
