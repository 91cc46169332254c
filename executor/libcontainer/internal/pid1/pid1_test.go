//go:build linux && cgo && (amd64 || arm64)

package pid1

import (
	"errors"
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
	return conn
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
			failure, err := c.Start(7, self(test.request), null, writer, null)
			writer.Close()
			if err != nil {
				t.Fatal(err)
			}
			defer failure.Close()
			started := receive(t, c)
			if started.Event != Started || started.ID != 7 || started.PID <= 0 {
				t.Fatalf("the answer is %+v", started)
			}
			err = ReadFailure(failure)
			var failed *Failure
			if errors.As(err, &failed) != (test.fails != 0) || failed != nil && *failed != (Failure{test.fails, test.errno}) {
				t.Errorf("the failure is %#v, want stage %d, %v", err, test.fails, test.errno)
			}
			out, err := io.ReadAll(reader)
			if err != nil || string(out) != test.output {
				t.Errorf("the output is %q, %v, want %q", out, err, test.output)
			}
			exited := receive(t, c)
			if exited.Event != Exited || exited.PID != started.PID || test.fails == 0 && exited.Status.ExitStatus() != test.status {
				t.Errorf("the end is %+v", exited)
			}
		})
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
