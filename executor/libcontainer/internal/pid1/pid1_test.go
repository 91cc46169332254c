//go:build linux && cgo && (amd64 || arm64)

package pid1

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// run starts the program outside of any container: it only reaps its own
// children then.
func run(t *testing.T) *Conn {
	t.Helper()
	conn, _ := runWithPID(t)
	return conn
}

func runWithPID(t *testing.T) (*Conn, int) {
	t.Helper()
	program, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	conn, other, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	cmd := exec.Command(ProgramPath)
	cmd.ExtraFiles = []*os.File{other, program}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("it ended with %v, want success once its socket is closed", err)
		}
	})
	if m := receive(t, conn); m.Event != Ready {
		t.Fatalf("its first message is %+v", m)
	}
	return conn, cmd.Process.Pid
}

func receive(t *testing.T, c *Conn) Message {
	t.Helper()
	for {
		m, err := c.Receive()
		if err == unix.EAGAIN {
			unix.Poll([]unix.PollFd{{Fd: int32(c.FD()), Events: unix.POLLIN}}, -1)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
}

func self(r Request) Request {
	r.UID, r.GID, r.KeepCapabilities = uint32(os.Getuid()), uint32(os.Getgid()), true
	if r.Dir == "" {
		r.Dir = "/"
	}
	return r
}

func TestTheFirstProcessStartsAndReaps(t *testing.T) {
	if os.Getuid() != 0 {
		// setgroups takes root; package libcontainer's tests say so.
		return
	}
	c := run(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, test := range []struct {
		name    string
		request Request
		output  string
		status  int
		fails   Stage
		errno   unix.Errno
	}{
		{name: "arguments and environment arrive", output: "a=b\n", status: 3,
			request: Request{Paths: []string{"/no/sh", "/bin/sh"}, Args: []string{"sh", "-c", `echo "$1=$X"; exit 3`, "-", "a"}, Env: []string{"X=b"}}},
		{name: "the directory is entered", output: "/tmp\n",
			request: Request{Paths: []string{"/bin/sh"}, Args: []string{"sh", "-c", "pwd"}, Dir: "/tmp"}},
		{name: "limits are set", output: "17\n",
			request: Request{Paths: []string{"/bin/sh"}, Args: []string{"sh", "-c", "ulimit -n"}, Limits: []Limit{{unix.RLIMIT_NOFILE, 17, 17}}}},
		{name: "no such program", fails: StageExec, errno: unix.ENOENT,
			request: Request{Paths: []string{"/no/such", "/neither"}, Args: []string{"x"}}},
		{name: "a file that is not a program", fails: StageExec, errno: unix.EACCES,
			request: Request{Paths: []string{"/etc/passwd", "/no/such"}, Args: []string{"x"}}},
		{name: "no such directory", fails: StageDir, errno: unix.ENOENT,
			request: Request{Paths: []string{"/bin/sh"}, Args: []string{"sh"}, Dir: "/no/such"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			reader, writer, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer reader.Close()
			answer, err := NewAnswer()
			if err != nil {
				t.Fatal(err)
			}
			defer answer.Close()
			err = c.Start(answer, self(test.request), null, writer, null)
			writer.Close()
			if err != nil {
				t.Fatal(err)
			}
			pid, err := read(t, answer)
			if pid <= 0 {
				t.Fatalf("the answer is %d, %v", pid, err)
			}
			var failed *Failure
			if errors.As(err, &failed) != (test.fails != 0) || failed != nil && *failed != (Failure{test.fails, test.errno}) {
				t.Errorf("the failure is %#v, want stage %d, %v", err, test.fails, test.errno)
			}
			out, err := io.ReadAll(reader)
			if err != nil || string(out) != test.output {
				t.Errorf("the output is %q, %v, want %q", out, err, test.output)
			}
			exited := receive(t, c)
			if exited.Event != Exited || exited.PID != pid || test.fails == 0 && exited.Status.ExitStatus() != test.status {
				t.Errorf("the end is %+v", exited)
			}
		})
	}
}

// read reads an answer to its end.
func read(t *testing.T, a *Answer) (pid int, failure error) {
	t.Helper()
	for {
		n, err := a.Next()
		switch {
		case err == nil:
			pid = n
		case err == unix.EAGAIN:
			unix.Poll([]unix.PollFd{{Fd: int32(a.FD()), Events: unix.POLLIN}}, -1)
		case err == io.EOF:
			return pid, failure
		default:
			failure = err
		}
	}
}

func TestAFirstProcessWithoutRoomForTheDescriptorsOfAStartSaysSoAndKeepsNone(t *testing.T) {
	if os.Getuid() != 0 {
		return // as above
	}
	c, pid := runWithPID(t)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	start := func() (int, error) {
		answer, err := NewAnswer()
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Close()
		if err := c.Start(answer, self(Request{Paths: []string{"/bin/true"}, Args: []string{"true"}}), null, null, null); err != nil {
			t.Fatal(err)
		}
		return read(t, answer)
	}
	if child, err := start(); child == 0 || err != nil {
		t.Fatalf("with room: %d, %v", child, err)
	}
	receive(t, c)      // its end
	limit := uint64(0) // of the numbers of its descriptors
	for room := 0; room <= 5; room++ {
		for ; ; limit++ { // up to the next that is free
			if _, err := os.Lstat(fmt.Sprintf("/proc/%d/fd/%d", pid, limit)); err != nil {
				break
			}
		}
		if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: limit, Max: 1024}, nil); err != nil {
			t.Fatal(err)
		}
		limit++
		child, err := start()
		var failed *Failure
		switch {
		case room == 0 && (child != 0 || err != nil):
			t.Errorf("room for none: %d, %v, want no answer", child, err)
		case room > 0 && room < 5 && (child != 0 || !errors.As(err, &failed) || *failed != Failure{StageFork, unix.EMFILE}):
			t.Errorf("room for %d: %d, %v", room, child, err)
		case room == 5 && (child == 0 || err != nil):
			t.Errorf("room for all: %d, %v", child, err)
		}
	}
	receive(t, c)
}

// Root in a container can lower the limits of the first process until it can no longer
// wait for messages. Then it must end, or the container would outlive its daemon.
func TestAFirstProcessThatCannotWaitAnyMoreEnds(t *testing.T) {
	if os.Getuid() != 0 {
		return // as above
	}
	c, pid := runWithPID(t)
	t.Cleanup(func() {
		if t.Failed() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
	})
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &unix.Rlimit{}, nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Signal(pid, 0); err != nil { // it looks up from its waiting
		t.Fatal(err)
	}
	polled := []unix.PollFd{{Fd: int32(c.FD()), Events: unix.POLLIN}}
	if n, err := unix.Poll(polled, 30_000); n == 0 || err != nil {
		t.Fatalf("it goes on: %v", err)
	}
	if m, err := c.Receive(); err == nil {
		t.Errorf("it says %+v", m)
	}
}

func TestAMessageWaitsOnlySoLongForAFirstProcessThatTakesNone(t *testing.T) {
	was := sendPatience
	sendPatience = 0
	defer func() { sendPatience = was }()
	c, other, err := Pair() // nobody reads the other end
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	defer c.Close()
	for sent := 0; err == nil; sent++ {
		if sent == 1_000_000 {
			t.Fatal("the socket holds a million messages")
		}
		err = c.Signal(1, 0)
	}
	if err != errStuck {
		t.Errorf("the error is %v", err)
	}
}

func TestNobodyCanChangeTheProgram(t *testing.T) {
	f, err := Program()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt([]byte{0}, 0); err == nil {
		t.Error("it was written")
	}
	if err := f.Truncate(0); err == nil {
		t.Error("it was cut")
	}
}
