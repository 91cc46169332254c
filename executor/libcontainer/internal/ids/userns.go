//go:build linux && cgo && (amd64 || arm64)

package ids

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
)

// newNamespace makes a user namespace in which the uids and gids from 0 on
// are count of the host's from first on. The kernel charges what is counted by
// uid in a namespace to the namespace's owner too, so that is first: were it
// root, all containers would share root's limits.
func newNamespace(first, count uint32) (space *os.File, err error) {
	mapping := []syscall.SysProcIDMap{{ContainerID: 0, HostID: int(first), Size: int(count)}}
	err = OnOwnThread(func() error {
		const same = ^uintptr(0)
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(first), same); errno != 0 {
			return os.NewSyscallError("setresuid", errno)
		}
		if err := keepCapabilities(); err != nil {
			return err
		}
		space, err = HoldNamespace(mapping)
		return err
	})
	return space, err
}

// HoldNamespace makes a user namespace with a mapping, which belongs to the thread's user.
// A process is needed to make it, and none to keep it. The error is not
// [Exhausted] where the host allows none.
func HoldNamespace(mapping []syscall.SysProcIDMap) (*os.File, error) {
	most, err := os.ReadFile("/proc/sys/user/max_user_namespaces")
	if err == nil && strings.TrimSpace(string(most)) == "0" { // the kernel would say that there is no room
		return nil, errors.New("user.max_user_namespaces is 0")
	}
	program, err := pid1.Program()
	if err != nil {
		return nil, err
	}
	defer program.Close()
	conn, other, err := pid1.Pair()
	if err != nil {
		return nil, err
	}
	defer other.Close()
	// The program waits for its socket to be closed.
	holder := exec.Command(pid1.ProgramPath)
	holder.ExtraFiles = []*os.File{other, program}
	holder.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWUSER, UidMappings: mapping, GidMappings: mapping, GidMappingsEnableSetgroups: true,
	}
	if err := holder.Start(); err != nil {
		conn.Close()
		return nil, err
	}
	space, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", holder.Process.Pid))
	conn.Close()
	holder.Wait()
	return space, err
}

// OnOwnThread calls f on a thread that is used for nothing else and ends with
// it, so that f may change who the thread is. What f makes does not depend on
// the umask of this process: the thread has one of its own, 022.
func OnOwnThread(f func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // for good
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			result <- os.NewSyscallError("unshare", err)
			return
		}
		unix.Umask(Umask)
		result <- f()
	}()
	return <-result
}

// Umask is that with which files of containers are made: their users must get
// through directories of which only root is to change anything.
const Umask = 0o022

// keepCapabilities gives the thread back what it has lost with its user.
func keepCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	for i := range data {
		data[i].Effective = data[i].Permitted
	}
	return os.NewSyscallError("capset", unix.Capset(&header, &data[0]))
}
