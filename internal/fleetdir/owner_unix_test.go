//go:build unix

package fleetdir_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/internal/fleetdir"
	"github.com/diegosdk/diego/internal/testenv"
)

// A user without a home has the directory in /tmp, where another user may have
// been first.
func TestWhatAnotherUserHasPutIntoASharedDirectoryIsNotBelieved(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root", "who can give a directory to another user")
	}
	shared := t.TempDir()
	published := func(name string) string {
		data := filepath.Join(shared, name)
		if err := os.Mkdir(data, 0o755); err != nil {
			t.Fatal(err)
		}
		issuer, err := fleetdir.Make(data, "127.0.0.1")
		if err == nil {
			err = issuer.Publish("https://127.0.0.1:1")
		}
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	mine, theirs, link := published("mine"), published("theirs"), filepath.Join(shared, "link")
	if err := errors.Join(os.Chown(theirs, 1, 1), os.Symlink(mine, link), os.Lchown(link, 1, 1)); err != nil {
		t.Fatal(err)
	}
	for _, private := range []bool{true, false} {
		if !private {
			if err := os.Chmod(shared, 0o777|fs.ModeSticky); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := fleetdir.Find(mine); err != nil {
			t.Errorf("mine: %v", err)
		}
		for _, data := range []string{theirs, link} {
			if _, err := fleetdir.Find(data); private && err != nil || !private && !errors.Is(err, fs.ErrPermission) {
				t.Errorf("%s, where others cannot put anything: %v: %v", data, private, err)
			}
		}
	}
}
