//go:build unix

package hostport

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

// rangeVar makes the test binary a backend of its own process: it takes as
// many ports as it can get of the range there, says which, and waits for the
// end of its input.
const rangeVar = "DIEGO_TEST_HOSTPORT_RANGE"

func TestMain(m *testing.M) {
	if text := os.Getenv(rangeVar); text != "" {
		var first, last uint16
		var occupy bool
		fmt.Sscan(text, &first, &last, &occupy)
		r := NewRange(first, last)
		for {
			mappings, err := r.Map("theirs", []uint16{1}, occupy)
			if err != nil {
				break
			}
			fmt.Print(mappings[0].HostPort, " ")
		}
		fmt.Println()
		io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// freeRange is n ports in a row on which nobody listens. Others take theirs
// from the default range of backends or from what systems give to outgoing
// connections, both of which lie above.
func freeRange(t *testing.T, n int) (first, last uint16) {
	t.Helper()
	for first := 20000 + os.Getpid()%5000; first < 32000; first += n {
		row := NewRange(uint16(first), uint16(first+n-1))
		_, err := row.Map("look", make([]uint16, n), true)
		row.Close()
		if err == nil {
			return uint16(first), uint16(first + n - 1)
		}
	}
	t.Fatal("no ports are free")
	return 0, 0
}

// A backend of another process.
type other struct {
	cmd   *exec.Cmd
	ports []uint16
}

func startOther(t *testing.T, first, last uint16, occupy bool) *other {
	t.Helper()
	o := &other{cmd: exec.Command(os.Args[0])}
	o.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d %v", rangeVar, first, last, occupy))
	o.cmd.Stderr = os.Stderr
	stdin, err := o.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := o.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := o.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		o.kill()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range strings.Fields(line) {
		port, err := strconv.ParseUint(word, 10, 16)
		if err != nil {
			t.Fatal(err)
		}
		o.ports = append(o.ports, uint16(port))
	}
	return o
}

// kill is kill -9: nobody cleans up.
func (o *other) kill() {
	o.cmd.Process.Kill()
	o.cmd.Wait()
}

func TestTwoProcessesNeverHaveTheSamePort(t *testing.T) {
	for _, occupy := range []bool{false, true} {
		if occupy && runtime.GOOS != "linux" {
			continue // only there ports are mapped
		}
		t.Run(fmt.Sprintf("occupied %v", occupy), func(t *testing.T) {
			first, last := freeRange(t, 6)
			ours := NewRange(first, last)
			defer ours.Close()
			mine, err := ours.Map("mine", []uint16{1, 2}, !occupy)
			if err != nil {
				t.Fatal(err)
			}
			o := startOther(t, first, last, occupy)
			want := []uint16{first, first + 1, first + 2, first + 3, first + 4, first + 5}
			want = slices.DeleteFunc(want, func(p uint16) bool { return p == mine[0].HostPort || p == mine[1].HostPort })
			if slices.Sort(o.ports); !slices.Equal(o.ports, want) {
				t.Errorf("beside %v of this process another took %v, want %v", mine, o.ports, want)
			}
			if got, err := ours.Map("mine", []uint16{3}, occupy); !errors.Is(err, executor.ErrNoPort) {
				t.Errorf("all are taken, and yet %v, %v", got, err)
			}
			// The kernel gives the ports of a dead daemon to others.
			o.kill()
			if got, err := ours.Map("mine", []uint16{3, 4, 5, 6}, occupy); err != nil {
				t.Errorf("the ports of a dead process: %v, %v", got, err)
			}
		})
	}
}

func TestTwoRangesOfOneProcessNeverHaveTheSamePort(t *testing.T) {
	first, last := freeRange(t, 4)
	seen := map[uint16]bool{}
	a, b := NewRange(first, last), NewRange(first, last)
	defer a.Close()
	defer b.Close()
	for i, r := range []*Range{a, b, b, a} {
		mappings, err := r.Map("c", []uint16{8080}, i%2 == 0)
		if err != nil {
			t.Fatal(err)
		}
		if p := mappings[0]; p.ContainerPort != 8080 || seen[p.HostPort] {
			t.Errorf("mapping %d is %v, given out before are %v", i, p, seen)
		}
		seen[mappings[0].HostPort] = true
	}
	if _, err := a.Map("c", []uint16{8080}, false); !errors.Is(err, executor.ErrNoPort) {
		t.Errorf("a fifth of four ports: %v", err)
	}
	b.Release("c")
	if n := b.Held(); n != 0 {
		t.Errorf("%d ports are held after their release", n)
	}
	b.Close()
	if _, err := a.Map("c", []uint16{1, 2}, false); err != nil {
		t.Errorf("what the other has given back: %v", err)
	}
	a.Close()
	if _, err := a.Map("c", []uint16{1}, false); !errors.Is(err, executor.ErrNoPort) {
		t.Errorf("after Close: %v", err)
	}
}

// What was meant for a container that is gone does not reach another one, of
// whichever cell of the host.
func TestAFreedPortRestsForAllBackendsOfTheHost(t *testing.T) {
	for _, occupy := range []bool{false, true} {
		t.Run(fmt.Sprintf("occupied %v", occupy), func(t *testing.T) {
			first, last := freeRange(t, 3)
			mine, theirs := NewRange(first, last), NewRange(first, last)
			defer mine.Close()
			defer theirs.Close()
			used, err := mine.Map("c", []uint16{1}, occupy)
			if err != nil {
				t.Fatal(err)
			}
			mine.Release("c")
			others, err := theirs.Map("d", []uint16{1, 2}, occupy)
			if err != nil || slices.ContainsFunc(others, func(m executor.PortMapping) bool { return m.HostPort == used[0].HostPort }) {
				t.Fatalf("after %v another backend got %v, %v", used, others, err)
			}
			if got, err := theirs.Map("e", []uint16{1}, occupy); !errors.Is(err, executor.ErrNoPort) {
				t.Errorf("a port that rests was given out: %v, %v", got, err)
			}
			// The backend itself has nothing else left.
			if got, err := mine.Map("f", []uint16{1}, occupy); err != nil || got[0].HostPort != used[0].HostPort {
				t.Errorf("got %v, %v, want %v", got, err, used)
			}
			// A rest ends by itself.
			mine.rest = time.Millisecond
			mine.Release("f")
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(time.Millisecond) {
				if got, err := theirs.Map("g", []uint16{1}, occupy); err == nil && got[0].HostPort == used[0].HostPort {
					break
				}
				if time.Now().After(deadline) {
					t.Fatal("the port rests for ever")
				}
			}
		})
	}
}

// A killed daemon's ports do not rest, and routers have not heard of its end
// when it is started again, or another one on its host.
func TestADaemonDoesNotBeginWithThePortsOfTheOneBefore(t *testing.T) {
	first, last := freeRange(t, 100)
	const tries = 50
	again, before := 0, uint16(0)
	for range tries {
		r := NewRange(first, last)
		got, err := r.Map("c", []uint16{1}, false)
		if err != nil {
			t.Fatal(err)
		}
		if got[0].HostPort == before {
			again++
		}
		before = got[0].HostPort
		r.Close() // as the kernel does
	}
	if again > tries/5 {
		t.Errorf("%d of %d daemons began with the port of the one before", again, tries)
	}
}

func TestPortsThatRestAreWokenWithoutASearchForEach(t *testing.T) {
	first, last := freeRange(t, 3)
	r := NewRange(first, last)
	defer r.Close()
	if _, err := r.Map("many", make([]uint16, 4), true); !errors.Is(err, executor.ErrNoPort) || r.Held() != 0 {
		t.Errorf("four of three ports: %v, and %d are held", err, r.Held())
	}
	before, err := r.Map("a", []uint16{1, 2, 3}, true)
	if err != nil {
		t.Fatal(err)
	}
	r.Release("a")
	next := r.next
	after, err := r.Map("b", []uint16{1, 2}, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, m := range after {
		if m.HostPort != before[i].HostPort {
			t.Errorf("port %d is %d, want %d, which has rested longest", i, m.HostPort, before[i].HostPort)
		}
	}
	if len(r.resting) != 1 || r.next != next { // one search of the whole range ends where it began
		t.Errorf("%d ports rest, and the search went from %d to %d", len(r.resting), next, r.next)
	}
}

func TestTheNumberOfPortsThatRestIsBounded(t *testing.T) {
	r := NewRange(1, 1)
	closed := 0
	for i := range maxResting + 10 {
		guid := fmt.Sprint(i)
		r.held[guid] = []held{{claim: closing(func() { closed++ })}}
		r.Release(guid)
	}
	if len(r.resting) != maxResting || closed != 10 {
		t.Errorf("%d ports rest, and %d have been given back", len(r.resting), closed)
	}
	r.Close()
	if len(r.resting) != 0 || closed != maxResting+10 {
		t.Errorf("after Close %d ports rest, and %d have been given back", len(r.resting), closed)
	}
}

type closing func()

func (c closing) Close() error { c(); return nil }

func TestAPortOnWhichAnybodyListensIsLeftOut(t *testing.T) {
	for _, address := range []string{"127.0.0.1", "", "0.0.0.0"} {
		t.Run("at "+address, func(t *testing.T) {
			first, last := freeRange(t, 2)
			l, err := net.Listen("tcp", net.JoinHostPort(address, strconv.Itoa(int(first))))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			r := NewRange(first, last)
			defer r.Close()
			if got, err := r.Map("c", []uint16{1}, false); err != nil || got[0].HostPort != last {
				t.Errorf("while somebody listens on %d: %v, %v", first, got, err)
			}
		})
	}
}

// A container's process listens whenever it likes, while others look for
// ports all the time.
func TestLookingForPortsDisturbsNobodyWhoBeginsToListen(t *testing.T) {
	first, last := freeRange(t, 2)
	mine, theirs := NewRange(first, last), NewRange(first, last)
	defer mine.Close()
	defer theirs.Close()
	mappings, err := mine.Map("c", []uint16{1, 2}, false)
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				if got, err := theirs.Map("d", []uint16{1}, true); err == nil {
					t.Errorf("somebody else got %v", got)
					return
				}
			}
		}
	}()
	for i := range 2000 {
		l, err := net.Listen("tcp", fmt.Sprintf(":%d", mappings[i%2].HostPort))
		if err != nil {
			t.Errorf("attempt %d: %v", i, err)
			break
		}
		l.Close()
	}
	close(stop)
	<-done
}
