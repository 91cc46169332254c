package testdb

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// startTimeout limits how long a server takes to answer, crash recovery
// included, and how long a clean stop takes.
const startTimeout = time.Minute

// A Server is a private database server in a temporary directory, on a free
// port of the loopback. Its methods are for one goroutine at a time.
type Server struct {
	engine   *engine
	bin      map[string]string // full paths by program
	dir      string
	owner    *account // nil: the user that runs the tests
	password string
	port     int
	dsn      string
	extra    []string // arguments besides those of the engine

	disk    *Disk       // nil: the one of temporary files
	process *os.Process // nil while stopped
	exited  chan error
}

// An account is a user of the system.
type account struct{ uid, gid int }

// Stop ends the server as an administrator would, and waits until it is gone.
func (s *Server) Stop(t testing.TB) {
	t.Helper()
	if err := s.end(s.engine.stop); err != nil {
		t.Fatal(err)
	}
}

// Kill ends the server as a power cut would: nothing is flushed, clients are
// not notified, and none of its processes is left to answer.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	orphans := s.children()
	if err := s.end(os.Kill); err != nil {
		t.Fatal(err)
	}
	for _, pid := range orphans {
		if p, err := os.FindProcess(pid); err == nil {
			p.Kill() // it may have noticed by itself
		}
	}
}

// children lists the server's child processes, if the system shows them.
func (s *Server) children() (pids []int) {
	if s.process == nil {
		return nil
	}
	list, _ := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", s.process.Pid))
	for _, field := range strings.Fields(string(list)) {
		if pid, err := strconv.Atoi(field); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Start starts the stopped or killed server again with the same port and data,
// and waits until it answers.
func (s *Server) Start(t testing.TB) {
	t.Helper()
	if s.process != nil {
		t.Fatalf("%s runs already", s.engine.name)
	}
	// PostgreSQL refuses to start until the children of a killed server have
	// noticed that it is gone.
	err := s.boot()
	for attempt := 1; err != nil && attempt < 10; attempt++ {
		time.Sleep(100 * time.Millisecond)
		err = s.boot()
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Standby starts a PostgreSQL server again in read-only mode, as if it followed
// another one.
func (s *Server) Standby(t testing.TB) {
	t.Helper()
	if err := s.writeFile(s.path("data/standby.signal"), ""); err != nil {
		t.Fatal(err)
	}
	s.Stop(t)
	s.Start(t)
}

// Save stops the server, copies its data and starts it again. fallBack stops
// the server, replaces its data by the copy and starts it.
func (s *Server) Save(t testing.TB) (fallBack func(t testing.TB)) {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "data")
	s.Stop(t)
	copyTree(t, s.path("data"), copied)
	s.Start(t)
	return func(t testing.TB) {
		t.Helper()
		s.Stop(t)
		if err := os.RemoveAll(s.path("data")); err != nil {
			t.Fatal(err)
		}
		copyTree(t, copied, s.path("data"))
		s.Start(t)
	}
}

// copyTree copies a directory with the owners and modes of its files.
func copyTree(t testing.TB, from, to string) {
	t.Helper()
	if output, err := exec.Command("cp", "-a", from, to).CombinedOutput(); err != nil {
		t.Fatalf("cp: %v: %s", err, output)
	}
}

// Revive waits until the server answers. If the server has ended by itself,
// Revive starts it.
func (s *Server) Revive(t testing.TB) {
	t.Helper()
	err := s.awaitAnswer()
	if err == nil {
		return
	}
	t.Logf("%s has to be started again: %.200v", s.engine.name, err)
	if err := s.end(os.Kill); err != nil {
		t.Fatal(err)
	}
	s.Start(t)
}

// find returns the full paths of the engine's programs.
func (e *engine) find() (map[string]string, error) {
	bin := make(map[string]string)
	for _, program := range e.programs {
		path, err := exec.LookPath(program)
		for _, dir := range e.dirs {
			matches, _ := filepath.Glob(filepath.Join(dir, program)) // the patterns are constants
			if path == "" && len(matches) > 0 {
				path = matches[len(matches)-1]
			}
		}
		if path == "" {
			return nil, err
		}
		bin[program] = path
	}
	return bin, nil
}

// start makes a data directory, on a disk of its own if it has a size, and
// starts a server with it. Another process may take the free port first, so
// start makes several attempts.
func (e *engine) start(diskBytes int64) (*Server, error) {
	bin, err := e.find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(os.Getenv(DirEnv), "diego-testdb-")
	if err != nil {
		return nil, err
	}
	s := &Server{engine: e, bin: bin, dir: dir, password: rand.Text()}
	if diskBytes > 0 {
		s.disk, err = mountDisk(s.path("data"), diskBytes)
	}
	if err == nil {
		err = s.prepare()
	}
	if err != nil {
		return nil, errors.Join(err, s.close())
	}
	for attempt := 1; ; attempt++ {
		if s.port, err = freePort(); err == nil {
			s.dsn = e.dsn(s)
			err = s.boot()
		}
		if err == nil {
			return s, nil
		}
		if attempt == 3 {
			return nil, errors.Join(err, s.close())
		}
	}
}

func (s *Server) prepare() error {
	if os.Getuid() == 0 { // neither server runs as root
		found, err := user.Lookup(s.engine.account)
		if err != nil {
			found, err = user.Lookup("nobody")
		}
		if err != nil {
			return err
		}
		uid, errUID := strconv.Atoi(found.Uid)
		gid, errGID := strconv.Atoi(found.Gid)
		if err := errors.Join(errUID, errGID); err != nil {
			return err
		}
		s.owner = &account{uid, gid}
		if err := s.give(s.dir); err != nil {
			return err
		}
		if s.disk != nil {
			if err := s.give(s.disk.Dir); err != nil {
				return err
			}
		}
	}
	return s.engine.initialize(s)
}

// boot starts the process and waits until the server answers. If it does not
// answer, the process has ended when boot returns.
func (s *Server) boot() error {
	log, err := os.OpenFile(s.path("log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := s.command(s.bin[s.engine.programs[0]], slices.Concat(s.engine.arguments(s), s.extra)...)
	cmd.Stdout, cmd.Stderr = log, log

	started := make(chan error)
	s.exited = make(chan error, 1)
	go func(exited chan<- error) {
		// The kernel signals the server when the thread that started it ends,
		// so this thread lives as long as the server.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			exited <- cmd.Wait()
		}
	}(s.exited)
	if err := <-started; err != nil {
		return err
	}
	s.process = cmd.Process
	if err := s.awaitAnswer(); err != nil {
		return errors.Join(err, s.end(os.Kill))
	}
	return nil
}

func (s *Server) awaitAnswer() error {
	db, err := sql.Open(s.engine.driver, s.dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	deadline := time.After(startTimeout)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		err := db.PingContext(ctx)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case exit := <-s.exited:
			s.exited <- exit
			return fmt.Errorf("%s ended at start: %v\n%s", s.engine.name, exit, s.logTail())
		case <-deadline:
			return fmt.Errorf("%s does not answer after %v: %w\n%s", s.engine.name, startTimeout, err, s.logTail())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// end signals the process, if it runs, and waits until it has ended.
func (s *Server) end(signal os.Signal) error {
	if s.process == nil {
		return nil
	}
	if err := s.process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stopping %s: %w", s.engine.name, err)
	}
	var late error
	select {
	case <-s.exited:
	case <-time.After(startTimeout):
		late = fmt.Errorf("%s did not stop within %v and was killed\n%s", s.engine.name, startTimeout, s.logTail())
		s.process.Kill() // it either dies now or is dead already
		<-s.exited
	}
	s.process = nil
	return late
}

func (s *Server) close() error {
	return errors.Join(s.end(s.engine.stop), s.disk.unmount(), os.RemoveAll(s.dir))
}

// run runs one of the engine's programs to its end, as the server's owner.
func (s *Server) run(program string, args ...string) error {
	output, err := s.command(program, args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", program, err, output)
	}
	return nil
}

// command passes only PATH to the program, so that no configuration of the user
// reaches it.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH") + ":/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C", "HOME=" + s.dir, "TMPDIR=" + s.dir}
	cmd.SysProcAttr = attributes(s.owner)
	return cmd
}

func (s *Server) path(name string) string { return filepath.Join(s.dir, name) }

func (s *Server) writeFile(path, content string) error {
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		return err
	}
	return s.give(path)
}

func (s *Server) give(path string) error {
	if s.owner == nil {
		return nil
	}
	return os.Chown(path, s.owner.uid, s.owner.gid)
}

func (s *Server) logTail() string {
	const limit = 4096
	log, err := os.ReadFile(s.path("log"))
	if err != nil {
		return err.Error()
	}
	return string(log[max(0, len(log)-limit):])
}

// freePort returns a port below the range from which systems assign ports, so
// that it is still free when the server starts again.
func freePort() (port int, err error) {
	const first, count, attempts = 14000, 6000, 100
	for range attempts {
		port = first + mathrand.IntN(count)
		var l net.Listener
		if l, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, err
}
