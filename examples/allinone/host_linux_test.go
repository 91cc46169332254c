package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/testdb"
	"github.com/diegosdk/diego/internal/testenv"
)

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		testenv.Missing(t, "root", "run the tests as root")
	}
}

func TestAFullDiskIsNamed(t *testing.T) {
	needRoot(t)
	data := t.TempDir()
	if err := syscall.Mount("none", data, "tmpfs", 0, "size=64k"); err != nil {
		testenv.Missing(t, "a mount", err.Error())
	}
	t.Cleanup(func() { _ = syscall.Unmount(data, syscall.MNT_DETACH) })
	p := start(t, "--data", data, "--backend", "process")
	p.wait("nothing can be kept in "+data, "full", "name another directory with --data")
	p.ends(daemon.ExitFailed)
}

func TestADiskThatFillsUpIsReportedOnTheScreenUntilThereIsRoom(t *testing.T) {
	disk := testdb.SmallDisk(t, 64<<20)
	data := disk.Dir + "/data"
	p := start(t, "--data", data, "--backend", daemon.ProcessBackend)
	p.wait("3 running")
	disk.Fill(t)
	p.wait("the disk", "nothing can be kept in "+data, "no space left", "Free space there")
	disk.Empty(t)
	p.wait("the disk", "there is room in "+data+" again")
	ask(t, "POST", p.address(1)+"/exit/3")
	p.wait("sample/1", "restarted after crash 1")
	interrupt(t, p)
	if n := p.count("the disk"); n != 2 {
		t.Errorf("it has said %d times what the disk is like, want 2", n)
	}
	nothingIsLeft(t, data)
}

func TestTheLastWordsCountWhatCouldNotBeRemoved(t *testing.T) {
	needRoot(t)
	data := t.TempDir()
	p := start(t, "--data", data, "--backend", daemon.ProcessBackend)
	p.wait("3 running")
	var mounts []string
	for i, root := range glob(t, data+"/cell-*/process/*/root") {
		if i == 2 {
			break
		}
		container := filepath.Dir(root) // a mount point cannot even be set aside
		if err := syscall.Mount("none", container, "tmpfs", 0, "size=64k"); err != nil {
			testenv.Missing(t, "a mount", err.Error())
		}
		t.Cleanup(func() { _ = syscall.Unmount(container, syscall.MNT_DETACH) })
		mounts = append(mounts, container)
	}
	p.signal(syscall.SIGTERM)
	p.wait("stopped", "could not be removed: 2", "until the next start with the same --data")
	p.wait("allinone: ", "cell-", "device or resource busy")
	p.ends(daemon.ExitFailed)
	if p.last("nothing runs any more") != "" {
		t.Error("it claims to have stopped everything")
	}
	for _, container := range mounts {
		if err := syscall.Unmount(container, syscall.MNT_DETACH); err != nil {
			t.Fatal(err)
		}
	}
	p = start(t, "--data", data, "--backend", daemon.ProcessBackend)
	p.wait("3 running")
	interrupt(t, p)
	nothingIsLeft(t, data)
}

// Nobody has a home in most systems.
func TestWhoeverIsNotRootGetsProcessesAndIsToldWhy(t *testing.T) {
	needRoot(t)
	data, err := os.MkdirTemp("", "allinone-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(data) })
	const nobody = 65534
	if err := os.Chown(data, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, "--data", data, "--cells", "1")
	cmd.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	p := startCommand(t, cmd)
	p.wait("containers", "process: NOTHING is isolated", "take root")
	p.wait("3 running")
	ask(t, "GET", p.address(0))
	interrupt(t, p)
	nothingIsLeft(t, data)
}

func TestAHostWithoutCgroupsGetsProcessesAndIsToldWhy(t *testing.T) {
	needRoot(t)
	unshare, err := exec.LookPath("unshare")
	if err != nil {
		testenv.Missing(t, "unshare", "install util-linux")
	}
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(t.TempDir(), "data")
	cmd := exec.Command(unshare, "--mount", "sh", "-c", `
		umount -R /sys/fs/cgroup && exec "$@"`, "sh", path, "--listen", "127.0.0.1:0", "--data", data, "--cells", "1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p := startCommand(t, cmd)
	p.wait("containers", "process: NOTHING is isolated", "cgroup")
	p.wait("3 running")
	interrupt(t, p)
	nothingIsLeft(t, data)
}
