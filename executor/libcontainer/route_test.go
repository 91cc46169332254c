//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
)

// unroutedDaemon is a cell in a network and a mount namespace of its own, in
// which nothing routes and no parameter can be set. It says what it thinks of
// that.
func unroutedDaemon() {
	die := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	const sysctl = "/proc/sys"
	die(unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""))
	die(os.WriteFile(sysctl+"/net/ipv4/ip_forward", []byte("0"), 0))
	die(unix.Mount(sysctl, sysctl, "", unix.MS_BIND|unix.MS_REC, ""))
	die(unix.Mount("", sysctl, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	b, err := New(Options{Dir: os.Getenv(daemonDir)})
	die(err)
	ctx := context.Background()
	host, err := b.Probe(ctx)
	die(err)
	for _, f := range host.Features {
		if f.Name == executor.FeatureOwnNetwork || f.Name == executor.FeatureEgressRules {
			fmt.Printf("%s: %s\n", f.Name, f.Missing)
		}
	}
	_, err = b.Create(ctx, executor.ContainerSpec{GUID: "a", RootFS: "host:", Ports: []uint16{8080}})
	fmt.Printf("unsupported %v: %v\n", errors.Is(err, executor.ErrUnsupported), err)
	guids, err := b.List(ctx)
	die(err)
	fmt.Println("left", guids)
	die(b.Close())
	os.Exit(0)
}

func TestWhereNothingRoutesProbeAndCreateSayWhatToDo(t *testing.T) {
	testenv.Root(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonDir+"="+filepath.Join(t.TempDir(), "cell"), daemonStage+"="+unrouted)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	const why = "the host cannot be made to route: open /proc/sys/net/ipv4/ip_forward: read-only file system; make /proc/sys writable, or: sysctl net.ipv4.ip_forward=1"
	want := fmt.Sprintf("%s: %s\n%s: %s\nunsupported true: container \"a\": not supported here: %s: %s\nleft []\n", executor.FeatureOwnNetwork, why, executor.FeatureEgressRules, why, executor.FeatureOwnNetwork, why)
	if string(out) != want {
		t.Errorf("it says\n%s, want\n%s", out, want)
	}
}
