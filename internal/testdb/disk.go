package testdb

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/internal/testenv"
)

// A Disk is a small file system, in memory, of one test's own.
type Disk struct {
	// Dir is where it is mounted.
	Dir    string
	keeper *exec.Cmd
	end    io.Closer
}

// ballast is the file that fills a disk, beside its user's own.
const ballast = "ballast"

// keep mounts a disk and unmounts it when its input ends. That happens however
// the test ends, as a process is gone with all its pipes; and no signal to the
// test's group keeps it from happening.
const keep = `trap '' INT TERM HUP QUIT
mount -t tmpfs -o size="$2",mode=700 diego-testdb "$1" || exit 1
echo mounted
read -r _
umount -l "$1"`

// mountDisk mounts a disk of so many bytes on a directory, which is made. It
// fails with an error that says what the system lacks.
func mountDisk(dir string, bytes int64) (*Disk, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("only root may mount one")
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	d := &Disk{Dir: dir, keeper: exec.Command("/bin/sh", "-c", keep, "sh", dir, fmt.Sprint(bytes))}
	var failure strings.Builder
	d.keeper.Stderr = &failure
	in, err := d.keeper.StdinPipe()
	if err != nil {
		return nil, err
	}
	d.end = in
	out, err := d.keeper.StdoutPipe()
	if err == nil {
		err = d.keeper.Start()
	}
	if err != nil {
		return nil, err
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		_ = d.keeper.Wait() // it says why
		return nil, errors.New(strings.TrimSpace(failure.String()))
	}
	return d, nil
}

func (d *Disk) unmount() error {
	if d == nil {
		return nil
	}
	return errors.Join(d.end.Close(), d.keeper.Wait())
}

// SmallDisk mounts a disk of so many bytes for a test, and unmounts it at its
// end. Only root can do that.
func SmallDisk(t testing.TB, bytes int64) *Disk {
	t.Helper()
	d, err := mountDisk(filepath.Join(t.TempDir(), "disk"), bytes)
	if err != nil {
		testenv.Missing(t, "a disk of the test's own", "run the tests as root where mounting is allowed ("+err.Error()+")")
	}
	t.Cleanup(func() {
		if err := d.unmount(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// StartPostgresOnSmallDisk is StartPostgres with all data on a disk of the
// server's own, for root only.
func StartPostgresOnSmallDisk(t testing.TB) *Server {
	t.Helper()
	return postgres.ownOnDisk(t)
}

// StartMySQLOnSmallDisk is StartMySQL with all data on a disk of the server's
// own, for root only.
func StartMySQLOnSmallDisk(t testing.TB) *Server {
	t.Helper()
	return mariadb.ownOnDisk(t)
}

func (e *engine) ownOnDisk(t testing.TB) *Server {
	t.Helper()
	SmallDisk(t, 1<<20) // says what is missing
	return e.own(t, e.diskBytes)
}

// FillDisk takes all room on the disk of a server that has one of its own.
func (s *Server) FillDisk(t testing.TB) {
	t.Helper()
	s.disk.Fill(t)
}

// EmptyDisk makes the room free again that FillDisk has taken.
func (s *Server) EmptyDisk(t testing.TB) {
	t.Helper()
	s.disk.Empty(t)
}

// Fill takes all room on the disk.
func (d *Disk) Fill(t testing.TB) {
	t.Helper()
	file, err := os.OpenFile(filepath.Join(d.Dir, ballast), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for size := 1 << 20; size > 0; {
		if _, err = file.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

// Empty makes the room free again that Fill has taken.
func (d *Disk) Empty(t testing.TB) {
	t.Helper()
	if err := os.Remove(filepath.Join(d.Dir, ballast)); err != nil {
		t.Fatal(err)
	}
}
