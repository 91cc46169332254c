//go:build linux && cgo && (amd64 || arm64)

package pid1

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestAConnectionThatHasEndedIsNoNewsToThePoller(t *testing.T) {
	p, err := NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	conn, other, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	seen := make(chan struct{})
	key, err := p.Watch(conn.FD(), func() bool {
		close(seen) // a second call panics
		return false
	})
	if err != nil {
		t.Fatal(err)
	}
	other.Close()
	<-seen
	for p.Watched() > 0 { // until the call has returned
		runtime.Gosched()
	}
	if waiting := waitsFor(t, p); waiting != 0 {
		t.Errorf("the kernel still reports %d descriptors, each again and again: their ends are not taken back", waiting)
	}
	p.Forget(key) // which has ended already
}

// waitsFor is how many descriptors the kernel watches for a Poller.
func waitsFor(t *testing.T, p *Poller) (count int) {
	t.Helper()
	err := p.raw.Control(func(epoll uintptr) {
		info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", epoll))
		if err != nil {
			t.Fatal(err)
		}
		count = strings.Count(string(info), "tfd:")
	})
	if err != nil {
		t.Fatal(err)
	}
	return count
}
