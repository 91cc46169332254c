//go:build linux && cgo && (amd64 || arm64)

package pid1

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
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

func TestThePollerSeesTheEndOfAPipeAndNotWhatIsWrittenToIt(t *testing.T) {
	p, err := NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	first, err := NewAnswer()
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := NewAnswer()
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	var ended atomic.Bool
	if _, err = p.WatchEnd(first.FD(), func() { ended.Store(true) }); err != nil {
		t.Fatal(err)
	}
	seen := make(chan struct{})
	if _, err = p.WatchEnd(second.FD(), func() { close(seen) }); err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Write(first.writer, []byte("12345678")); err != nil {
		t.Fatal(err)
	}
	second.sent()
	<-seen // what is reported is so in its order
	if ended.Load() {
		t.Error("what was written is taken for the end")
	}
	first.sent()
	for p.Watched() > 0 {
		runtime.Gosched()
	}
	if !ended.Load() {
		t.Error("the end of the first is not reported")
	}
	if waiting := waitsFor(t, p); waiting != 0 {
		t.Errorf("the kernel still watches %d descriptors", waiting)
	}
}

func TestAKeyIsNotGivenTwiceWhileItsWatchLasts(t *testing.T) {
	p, err := NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	seen := map[int32]bool{}
	for range 3 {
		p.mu.Lock()
		p.next = -2 // as after 2^32 watches
		p.mu.Unlock()
		a, err := NewAnswer()
		if err != nil {
			t.Fatal(err)
		}
		defer a.Close()
		key, err := p.WatchEnd(a.FD(), func() {})
		if err != nil {
			t.Fatal(err)
		}
		if seen[key] || key == wakeKey {
			t.Errorf("key %d is given again", key)
		}
		seen[key] = true
		defer p.Forget(key)
	}
}

// The kernel has one lock for all changes of nested ones, and containers may hold it.
func TestNoOtherPollerWatchesAPoller(t *testing.T) {
	p, err := NewPoller()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	infos, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range infos {
		info, _ := os.ReadFile(name) // there may be no such descriptor any more
		for line := range strings.Lines(string(info)) {
			if f := strings.Fields(line); len(f) > 1 && f[0] == "tfd:" && f[1] == strconv.Itoa(p.epoll) {
				t.Errorf("%s watches it", name)
			}
		}
	}
}

// waitsFor is how many descriptors of others the kernel watches for a Poller.
func waitsFor(t *testing.T, p *Poller) (count int) {
	t.Helper()
	info, err := os.ReadFile(fmt.Sprintf("/proc/self/fdinfo/%d", p.epoll))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(info), "tfd:") - 1 // its own wake
}
