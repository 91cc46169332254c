//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// sharedDaemon is a cell on a host that shares its mounts, as systemd makes it:
// what is mounted and unmounted in one mount namespace is so in others. Its
// containers say what they see.
func sharedDaemon() {
	die := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	die(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "")) // apart from this machine
	die(unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""))
	ctx := context.Background()
	for _, sharedIDs := range []bool{false, true} {
		b, err := New(Options{Dir: os.Getenv(daemonDir), SharedIDs: sharedIDs})
		die(err)
		spec := full("a")
		_, err = b.Create(ctx, spec)
		die(err)
		ended := make(chan executor.Exit, 1)
		_, err = b.Start(ctx, "a", executor.ProcessSpec{
			Path: "/bin/sh", Args: []string{"-c", "test -e /mnt/etc/passwd && test -e /job/file && test -d /proc/self && echo all is there"}, User: "nobody",
			Stdout: os.Stdout, Stderr: os.Stdout, Exited: func(e executor.Exit) { ended <- e },
		})
		die(err)
		if e := <-ended; !e.Success() {
			die(fmt.Errorf("it ended with %v", e))
		}
		die(b.Delete(ctx, "a"))
		die(b.Close())
	}
	os.Exit(0)
}

func TestContainersKeepTheirFilesWhereTheHostSharesItsMounts(t *testing.T) {
	newFixture(t) // or this host has no containers
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonDir+"="+filepath.Join(t.TempDir(), "cell"), daemonStage+"="+shared)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil || string(out) != "all is there\nall is there\n" {
		t.Errorf("%v: they say %q", err, out)
	}
}
