//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
)

// sessionLeader is set in a copy of this test's process that leads a session
// and has no terminal, as a daemon does.
const sessionLeader = "DIEGO_TEST_SESSION_LEADER"

// traps makes links to a terminal, to a pipe and to what stands for the
// terminal of the process that opens it, holds the terminal and says so.
const traps = `use Fcntl; sysopen(M, "/dev/ptmx", O_RDWR|O_NOCTTY) or die "ptmx: $!";
my $n = pack("L", 0); ioctl(M, 0x40045431, $n) or die; ioctl(M, 0x80045430, $n) or die; $n = unpack("L", $n);
system("mkfifo", "/tmp/pipe");
%traps = (pts => "/dev/pts/$n", tty => "/dev/tty", ptmx => "/dev/ptmx", pipe => "/tmp/pipe");
for (keys %traps) { symlink($traps{$_}, "/tmp/to-$_") or die; mkdir "/tmp/dir-$_"; symlink($traps{$_}, "/tmp/dir-$_/inside") or die; }
$| = 1; print "terminal $n\n"; sleep 1000;`

func TestNoPathOfAContainerGivesTheDaemonATerminal(t *testing.T) {
	if os.Getenv(sessionLeader) == "" {
		testenv.Root(t)
		child := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), sessionLeader+"=yes")
		child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if out, err := child.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	// One that gets a terminal has it, and ends with it: closing the other end
	// is SIGHUP.
	look := func(after string) {
		t.Helper()
		if tty, err := os.OpenFile("/dev/tty", os.O_RDWR|unix.O_NOCTTY, 0); err == nil {
			tty.Close()
			t.Fatalf("the daemon has a terminal after %s", after)
		}
	}
	look("its start")
	f := newFixture(t)
	guid, _ := f.create()
	r := f.as("root", guid, "", func(s *executor.ProcessSpec) { s.Path, s.Args = "perl", []string{"-e", traps} })
	r.says("terminal ")
	f.session("root", guid, "tty", inTerminal).end()
	look("a session with a terminal")
	terminal := "/dev/pts/" + strings.TrimSpace(strings.TrimPrefix(r.stdout.String(), "terminal "))

	for _, file := range []string{"/etc/passwd", "/etc/group"} {
		for _, target := range []string{terminal, "/dev/tty", "/tmp/pipe"} {
			if e := f.as("0", guid, "rm -f "+file+" && ln -s "+target+" "+file).end(); !e.Success() {
				t.Fatalf("%s cannot be made a link: %v", file, e)
			}
			if e := f.as("0:0", guid, "true").end(); !e.Success() {
				t.Errorf("with a %s that leads to %s, nothing starts: %v", file, target, e)
			}
			f.try("somebody", guid, "true")
			look(file + " as a link to " + target)
		}
	}
	var inside bytes.Buffer
	w := tar.NewWriter(&inside)
	w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "inside", Mode: 0o644, Size: 1})
	w.Write([]byte("x"))
	w.Close()
	for _, name := range []string{terminal, "/dev/tty", "/dev/ptmx", "/dev/pts/ptmx", "/dev/console", "/dev/null", "/tmp/pipe",
		"/tmp/to-pts", "/tmp/to-tty", "/tmp/to-ptmx", "/tmp/to-pipe", "/tmp/dir-pts", "/tmp/dir-tty", "/tmp/dir-pipe", "/dev", "/proc/self/fd/0"} {
		if stream, err := f.StreamOut(f.ctx, guid, name, "root"); err == nil {
			io.Copy(io.Discard, stream)
			stream.Close()
		}
		look("an upload of " + name)
		for _, dir := range []string{name, path.Join(name, "below")} {
			f.StreamIn(f.ctx, guid, dir, "root", bytes.NewReader(inside.Bytes()))
			look("a download to " + dir)
		}
		f.containers[guid].writeFile(executor.File{Path: name, Content: "x"})
		look("a file at " + name)
	}
}
