//go:build linux && cgo

package libcontainer

import (
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// foreignCaller is a program that makes a call of i386 and then ends with
// status 0.
func foreignCaller() []byte {
	code := []byte{
		0xb8, 20, 0, 0, 0, // mov $getpid of i386, %eax
		0xcd, 0x80, // int $0x80
		0xb8, unix.SYS_EXIT_GROUP, 0, 0, 0, // mov $exit_group, %eax
		0x31, 0xff, // xor %edi, %edi
		0x0f, 0x05, // syscall
	}
	return executable(code)
}

func TestACallOfAnotherArchitectureKills(t *testing.T) {
	f := newFixture(t)
	caller := f.hostFile("caller", string(foreignCaller()), 0o755)
	want := executor.Exit{Signal: int(unix.SIGSYS)}
	if err := exec.Command(caller).Run(); err != nil {
		t.Logf("this kernel knows no i386: %v", err)
		want.Signal = int(unix.SIGSEGV)
	}
	guid, _ := f.create(func(c *executor.ContainerSpec) {
		c.Mounts = []executor.Mount{{Source: caller, Target: "/caller"}}
	})
	for _, user := range []string{"root", "nobody"} {
		if e := f.as(user, guid, "exec /caller").end(); e != want {
			t.Errorf("as %s it ended with %+v, want %+v", user, e, want)
		}
	}
}
