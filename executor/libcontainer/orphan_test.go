//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/hostport"
	"github.com/diegosdk/diego/internal/testenv"
)

// The ports of mappedDaemon. Other tests take theirs above.
const (
	firstOrphanPort = 12000
	lastOrphanPort  = 13000
)

// mappedDaemon is a cell that maps a port to a container, says which, and
// lives on until somebody ends it.
func mappedDaemon() {
	port, err := func() (uint16, error) {
		b, err := New(Options{Dir: os.Getenv(daemonDir), FirstPort: firstOrphanPort, LastPort: lastOrphanPort})
		if err != nil {
			return 0, err
		}
		endpoint, err := b.Create(context.Background(), executor.ContainerSpec{
			GUID: "a", RootFS: "host:", Resources: executor.Resources{MemoryMB: 64, DiskMB: 16}, Ports: []uint16{8080},
		})
		if err != nil {
			return 0, errors.Join(err, b.Close())
		}
		return endpoint.Ports[0].HostPort, nil
	}()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(port)
	io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// killedDaemon leaves behind what a mappedDaemon over dir does that is killed,
// and returns the port that it had mapped to its container "a".
func killedDaemon(t *testing.T, dir string) uint16 {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), daemonDir+"="+dir, daemonStage+"="+mapped)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	cmd.Process.Kill()
	cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(strings.TrimSpace(line), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return uint16(port)
}

func TestAPortOfADaemonThatWasKilledIsAnybodys(t *testing.T) {
	testenv.Root(t)
	dir := filepath.Join(t.TempDir(), "cell")
	port := killedDaemon(t, dir)
	// What is on the disk is for the next daemon with this Dir. It is made once
	// the port has been tried: nobody needs it for that.
	t.Cleanup(func() {
		f := newFixture(t, func(o *Options) { o.Dir = dir })
		f.eventually("what ran has ended", func() bool { return !running(t, f.Backend) })
	})
	claimed := hostport.NewRange(port, port)
	defer claimed.Close()
	if _, err := claimed.Map("plain", []uint16{1}, false); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := net.DialTimeout("tcp", l.Addr().String(), patience)
	if err != nil {
		t.Fatalf("who listens where a dead daemon's container was is not reached: %v", err)
	}
	conn.Close()
}

func TestADaemonThatIsKilledLeavesNoMountAndNoLoopDevice(t *testing.T) {
	testenv.Root(t)
	dir := filepath.Join(t.TempDir(), "cell")
	killedDaemon(t, dir)
	deadline := time.Now().Add(patience)
	left := append(mounts(t, dir), loops(t, dir)...)
	for len(left) > 0 && time.Now().Before(deadline) { // the kernel ends the container, and then its mounts
		time.Sleep(time.Millisecond) // between two looks
		left = append(mounts(t, dir), loops(t, dir)...)
	}
	if len(left) > 0 {
		t.Errorf("nobody has started another daemon, and this is left: %q", left)
	}
	// The rest is for the next daemon with this Dir.
	f := newFixture(t, func(o *Options) { o.Dir = dir })
	f.delete("a")
	f.eventually("what ran has ended", func() bool { return !running(t, f.Backend) })
}

func TestAContainerMayHaveThousandsOfEgressRules(t *testing.T) {
	f := newFixture(t)
	tcp, _ := outside(f)
	var rules []executor.EgressRule
	for range 3000 {
		rules = append(rules, executor.EgressRule{Protocol: executor.ProtocolTCP, Destinations: []string{"192.0.2.1"}, Ports: []uint16{1}})
	}
	for _, allowed := range []bool{false, true} {
		if allowed {
			rules = append(rules, executor.EgressRule{Protocol: executor.ProtocolTCP, Destinations: []string{tcp.Addr().String()}, Ports: []uint16{tcp.Port()}})
		}
		guid, _ := f.create(func(c *executor.ContainerSpec) { c.EgressRules = rules })
		if got := reaches(f, guid, "tcp", tcp); got != allowed {
			t.Errorf("with %d rules it is reached: %v", len(rules), got)
		}
		f.delete(guid)
	}
}
