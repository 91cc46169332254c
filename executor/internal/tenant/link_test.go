package tenant_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/executor/internal/tenant"
)

func TestALinkThatWasReplacedHasChanged(t *testing.T) {
	dir := t.TempDir()
	root, err := tenant.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, "file"), nil, 0o600), os.Symlink("file", filepath.Join(dir, "link"))); err != nil {
		t.Fatal(err)
	}
	if target, err := root.Readlink("link"); target != "file" || err != nil {
		t.Errorf("the link leads to %q, %v", target, err)
	}
	// The caller has seen a link, and finds a file.
	if _, err := root.Readlink("file"); !errors.Is(err, tenant.ErrChanged) {
		t.Errorf("the error is %v", err)
	}
	if _, err := root.Readlink("none"); !errors.Is(err, os.ErrNotExist) || errors.Is(err, tenant.ErrChanged) {
		t.Errorf("the error is %v", err)
	}
}
