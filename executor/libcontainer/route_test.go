//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
)

// readOnly makes what is below dir read-only until the end of the test.
func readOnly(t *testing.T, dir string) {
	t.Helper()
	needRoot(t)
	if err := unix.Mount(dir, dir, "", unix.MS_BIND, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(dir, unix.MNT_DETACH) })
	if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
}

func TestAHostThatDoesNotRouteIsMadeToOrSaysWhatToDo(t *testing.T) {
	const (
		forward = "net/ipv4/ip_forward"
		advice  = "; set net.ipv4.ip_forward=1 with SYSCTL writable, or Options.HostNetwork"
	)
	for _, test := range []struct {
		name     string
		files    map[string]string
		readOnly bool
		want     string // of the file; empty if it is not there
		err      string
	}{
		{name: "it routes", files: map[string]string{forward: "1\n"}, want: "1\n"},
		{name: "it does not", files: map[string]string{forward: "0\n"}, want: "1"},
		{name: "it says something else", files: map[string]string{forward: "?"}, want: "1"},
		{name: "it does not and cannot be made to", files: map[string]string{forward: "0\n"}, readOnly: true, want: "0\n",
			err: "the host cannot be made to route: open SYSCTL/net/ipv4/ip_forward: read-only file system" + advice},
		{name: "it routes but nothing can be set", files: map[string]string{forward: "1\n"}, readOnly: true, want: "1\n",
			err: "networks of containers cannot be set up, as parameters of the kernel cannot be set: read-only file system; mount SYSCTL writable or set Options.HostNetwork"},
		{name: "there is no such parameter", files: map[string]string{"net/ipv4/": ""},
			err: "the host cannot be made to route: open SYSCTL/net/ipv4/ip_forward: no such file or directory" + advice},
		{name: "the parameter is a directory", files: map[string]string{forward + "/": ""},
			err: "the host cannot be made to route: read SYSCTL/net/ipv4/ip_forward: is a directory" + advice},
	} {
		t.Run(test.name, func(t *testing.T) {
			sysctl := tree(t, test.files)
			if test.readOnly {
				readOnly(t, sysctl)
			}
			got := ""
			if err := route(sysctl); err != nil {
				got = strings.ReplaceAll(err.Error(), sysctl, "SYSCTL")
			}
			if got != test.err {
				t.Errorf("the error is\n%s, want\n%s", got, test.err)
			}
			text, _ := os.ReadFile(filepath.Join(sysctl, forward))
			if string(text) != test.want {
				t.Errorf("the file is %q, want %q", text, test.want)
			}
		})
	}
}

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
	needRoot(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonDir+"="+filepath.Join(t.TempDir(), "cell"), daemonStage+"="+unrouted)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET}
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	const why = "the host cannot be made to route: open /proc/sys/net/ipv4/ip_forward: read-only file system; set net.ipv4.ip_forward=1 with /proc/sys writable, or Options.HostNetwork"
	want := fmt.Sprintf("%s: %s\n%s: %s\nunsupported true: container \"a\": not supported here: %s: %s\nleft []\n", executor.FeatureOwnNetwork, why, executor.FeatureEgressRules, why, executor.FeatureOwnNetwork, why)
	if string(out) != want {
		t.Errorf("it says\n%s, want\n%s", out, want)
	}
}
