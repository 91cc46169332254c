//go:build unix

package sqlstore

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore/internal/dialect"
)

// permissions are those of the files of a database that is open.
func permissions(t *testing.T, path string) map[string]os.FileMode {
	t.Helper()
	all := map[string]os.FileMode{}
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(path+suffix)] = info.Mode().Perm()
	}
	return all
}

func touch(t *testing.T, s *Store) {
	t.Helper()
	if _, err := s.Commit(t.Context(), storage.Batch{Domains: []storage.DomainWrite{{Name: "d"}}}); err != nil {
		t.Fatal(err)
	}
}

func TestTheFilesOfASQLiteDatabaseAreTheirOwnersAlone(t *testing.T) {
	// The default permissions of the process do not matter.
	before := syscall.Umask(0)
	defer syscall.Umask(before)
	path := filepath.Join(t.TempDir(), "diego.db")
	s := mustOpen(t, "sqlite:"+path, Options{})
	touch(t, s)
	for file, mode := range permissions(t, path) {
		if mode != 0o600 {
			t.Errorf("%s is %v", file, mode)
		}
	}
}

func TestFilesThatAnEarlierReleaseLeftOpenToOthersAreClosedAndThatIsLogged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "diego.db")
	first := mustOpen(t, "sqlite:"+path, Options{}) // stays open, so that there is a log
	touch(t, first)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Chmod(path+suffix, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for round, lines := range []int{3, 0} { // the second time there is nothing to do
		log := new(bytes.Buffer)
		s := mustOpen(t, "sqlite:"+path, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
		touch(t, s)
		for file, mode := range permissions(t, path) {
			if mode != 0o600 {
				t.Errorf("%s is %v", file, mode)
			}
			if said := strings.Contains(log.String(), "/"+file+" was=-rw-r--r-- is=-rw-------"); said != (round == 0) {
				t.Errorf("round %d, %s: %s", round, file, log)
			}
		}
		if n := strings.Count(log.String(), "\n"); n != lines {
			t.Errorf("round %d: %d lines: %s", round, n, log)
		}
	}
}

func TestADatabaseThatIsOnlyReadIsNotMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "diego.db")
	dialect.KeepPrivate(path, "ro", slog.New(slog.DiscardHandler))
	if _, err := os.Stat(path); err == nil {
		t.Error("it is there")
	}
}
