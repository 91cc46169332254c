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

// A Disk is a small file system in memory that belongs to one test.
type Disk struct {
	// Dir is where it is mounted.
	Dir    string
	keeper *exec.Cmd
	end    io.Closer
}

// ballast is the name of the file that fills a disk.
const ballast = "ballast"

// keep mounts a disk and unmounts it when its input ends. The input ends with
// the test process, however that ends, and no signal to the test's process
// group prevents it.
const keep = `trap '' INT TERM HUP QUIT
mount -t tmpfs -o size="$2",mode=700 diego-testdb "$1" || exit 1
echo mounted
read -r _
umount -l "$1"`

// mountDisk makes a directory and mounts a disk of this many bytes on it. The
// error says what the system lacks.
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
		_ = d.keeper.Wait() // its output has the reason
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

// SmallDisk mounts a disk of this many bytes for a test and unmounts it at the
// end of the test. It needs root.
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

// StartPostgresOnSmallDisk is StartPostgres with all data on a disk that
// belongs to the server. It needs root.
func StartPostgresOnSmallDisk(t testing.TB) *Server {
	t.Helper()
	return postgres.ownOnDisk(t)
}

// StartMySQLOnSmallDisk is StartMySQL with all data on a disk that belongs to
// the server. It needs root.
func StartMySQLOnSmallDisk(t testing.TB) *Server {
	t.Helper()
	return mariadb.ownOnDisk(t)
}

func (e *engine) ownOnDisk(t testing.TB) *Server {
	t.Helper()
	SmallDisk(t, 1<<20) // says what is missing
	return e.own(t, e.diskBytes)
}

// FillDisk fills the server's own disk.
func (s *Server) FillDisk(t testing.TB) {
	t.Helper()
	s.disk.Fill(t)
}

// EmptyDisk frees the room that FillDisk has taken.
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

// Empty frees the room that Fill has taken.
func (d *Disk) Empty(t testing.TB) {
	t.Helper()
	if err := os.Remove(filepath.Join(d.Dir, ballast)); err != nil {
		t.Fatal(err)
	}
}
