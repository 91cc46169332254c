//go:build unix

package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/internal/testenv"
)

func TestTheDirectoryOfAProcessIsItsUsersAlone(t *testing.T) {
	for _, tt := range []struct {
		name string
		// mode is that of a directory which is there, 0 if there is none, and
		// inside is what lies in it.
		mode   os.FileMode
		inside string
		want   os.FileMode
		says   string
	}{
		{"a new one", 0, "", 0o700, ""},
		{"an empty one that others can read", 0o755, "", 0o700, "others could look into "},
		{"one that an earlier release made", 0o711, "lock", 0o700, "(drwx--x--x); now only its owner can (drwx------)"},
		{"a file system in memory, as it is mounted", 0o777 | os.ModeSticky, "", 0o700, "now only its owner can"},
		{"a private one", 0o700, "lock", 0o700, ""},
		{"one with other things in it", 0o755, "index.html", 0o755, "others can look into "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dir")
			if tt.mode != 0 {
				if err := os.Mkdir(path, 0o700); err != nil {
					t.Fatal(err)
				}
				if tt.inside != "" {
					if err := os.WriteFile(filepath.Join(path, tt.inside), nil, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				if err := os.Chmod(path, tt.mode); err != nil {
					t.Fatal(err)
				}
			}
			d, err := OpenDir("dir", path)
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			log := new(testenv.Output)
			d.Tell(new(Logging).Logger(log))
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != tt.want {
				t.Errorf("it is %v, %v", info.Mode(), err)
			}
			if (log.String() == "") != (tt.says == "") || !strings.Contains(log.String(), tt.says) {
				t.Errorf("the log has %q", log.String())
			}
			f, err := d.Create("file")
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			below, err := d.Make("below")
			if err != nil {
				t.Fatal(err)
			}
			for name, want := range map[string]os.FileMode{f.Name(): 0o600, below: 0o700} {
				if info, err := os.Stat(name); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s is %v, %v", name, info.Mode(), err)
				}
			}
		})
	}
}

func TestADirectoryWithOtherThingsInItIsLeftAsItIsAtLaterStartsToo(t *testing.T) {
	path := t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(path, "index.html"), nil, 0o644), os.Chmod(path, 0o755)); err != nil {
		t.Fatal(err)
	}
	for n := range 3 {
		d, err := OpenDir("dir", path)
		if err != nil {
			t.Fatal(err)
		}
		log := new(testenv.Output)
		d.Tell(new(Logging).Logger(log))
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("after %d starts it is %v, %v", n+1, info.Mode(), err)
		}
		if want := "others can look into "; !strings.Contains(log.String(), want) {
			t.Errorf("after %d starts the log does not say %q: %q", n+1, want, log.String())
		}
		if _, err := OpenDir("dir", path); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("by process %d; stop", os.Getpid())) {
			t.Errorf("a second one at the same time: %v", err)
		}
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFileThatAnEarlierReleaseLeftOpenToOthersIsClosed(t *testing.T) {
	d, err := OpenDir("data", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := os.WriteFile(d.In("log"), []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := d.Create("log")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || info.Mode().Perm() != 0o600 || info.Size() != 0 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestADirectoryOfOthersIsRefused(t *testing.T) {
	shared := t.TempDir()
	if err := os.WriteFile(filepath.Join(shared, "theirs"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(shared, 0o777|os.ModeSticky); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir("data", shared); err == nil || !strings.Contains(err.Error(), "is shared by all users") || !strings.Contains(err.Error(), "--data") {
		t.Errorf("a directory like /tmp: %v", err)
	}
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root", "who can give a directory to another user")
	}
	theirs := t.TempDir()
	if err := syscall.Chown(theirs, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir("data", theirs); err == nil || !strings.Contains(err.Error(), theirs+" belongs to the user 12345") || !strings.Contains(err.Error(), "--data") {
		t.Errorf("a directory of another user: %v", err)
	}
	if _, err := os.Stat(filepath.Join(theirs, lockName)); err == nil {
		t.Error("something was put into it")
	}
	// As /tmp is for all but root: nobody should be told to take it.
	if err := errors.Join(syscall.Chown(shared, 12345, 12345), os.Chmod(shared, 0o777|os.ModeSticky)); err != nil {
		t.Fatal(err)
	}
	want := "is shared by all users of this host"
	if _, err := OpenDir("data", shared); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "chown") || !strings.Contains(err.Error(), "such as "+filepath.Join(shared, "diego")) {
		t.Errorf("a directory like /tmp that belongs to another: %v", err)
	}
}
