//go:build linux && cgo && (amd64 || arm64)

package pid1

import (
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A Poller waits for the messages of all first processes at once: it has one
// thread, however many there are. Its methods may be called concurrently.
//
// Go's own poller does not watch it. That would spare the thread, but the kernel has
// one lock of the whole host for all changes of an epoll that another one watches. A
// container may hold that lock for as long as it likes.
type Poller struct {
	wake *os.File // an eventfd that ends the thread
	done chan struct{}

	mu      sync.Mutex
	epoll   int // -1 once it is closed
	next    int32
	watched map[int32]watch
}

// wakeKey is the key of Poller.wake, and of no watch.
const wakeKey = 0

// A watch is a descriptor with what is called when there is news of it.
type watch struct {
	fd    int
	ready func() bool
}

// NewPoller starts a Poller, which Close ends.
func NewPoller() (*Poller, error) {
	epoll, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	wake, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		unix.Close(epoll)
		return nil, os.NewSyscallError("eventfd", err)
	}
	p := &Poller{wake: os.NewFile(uintptr(wake), "wake"), done: make(chan struct{}), epoll: epoll, watched: make(map[int32]watch)}
	if err := p.control(unix.EPOLL_CTL_ADD, wake, unix.EPOLLIN, wakeKey); err != nil {
		p.wake.Close()
		unix.Close(epoll)
		return nil, err
	}
	go p.run(epoll)
	return p, nil
}

// control changes what is watched. The caller holds mu, or is the only one who has p.
func (p *Poller) control(change, fd int, events uint32, key int32) error {
	return os.NewSyscallError("epoll_ctl", unix.EpollCtl(p.epoll, change, fd, &unix.EpollEvent{Events: events, Fd: key}))
}

// Watch calls ready whenever there may be something to read, until it returns
// false. It is called by one goroutine for all and must not block.
func (p *Poller) Watch(fd int, ready func() bool) (key int32, err error) {
	return p.watch(fd, unix.EPOLLIN, ready)
}

// WatchEnd calls ended once nobody can write to a pipe any more. What is written
// to it meanwhile wakes nobody up. Otherwise it is like Watch.
func (p *Poller) WatchEnd(fd int, ended func()) (key int32, err error) {
	return p.watch(fd, 0, func() bool { ended(); return false }) // the kernel always reports an end
}

func (p *Poller) watch(fd int, events uint32, ready func() bool) (key int32, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.next++; p.next == wakeKey || p.watched[p.next].ready != nil; p.next++ { // it has wrapped around, and that watch still lasts
	}
	key = p.next
	p.watched[key] = watch{fd, ready}
	if err = p.control(unix.EPOLL_CTL_ADD, fd, events, key); err != nil {
		delete(p.watched, key)
	}
	return key, err
}

// Forget ends a watch, if it has not ended, before its descriptor is closed. A
// call that is in progress goes on.
func (p *Poller) Forget(key int32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w, watched := p.watched[key]; watched {
		delete(p.watched, key)
		_ = p.control(unix.EPOLL_CTL_DEL, w.fd, 0, key)
	}
}

func (p *Poller) run(epoll int) {
	defer close(p.done)
	var room [64]unix.EpollEvent
	for {
		n, err := unix.EpollWait(epoll, room[:], -1)
		if err != nil && err != unix.EINTR {
			return
		}
		for _, e := range room[:max(n, 0)] {
			if e.Fd == wakeKey {
				return
			}
			p.mu.Lock()
			ready := p.watched[e.Fd].ready
			p.mu.Unlock()
			if ready != nil && !ready() {
				p.Forget(e.Fd) // its end would be news for as long as it is open
			}
		}
	}
}

// Watched is how many descriptors it waits for.
func (p *Poller) Watched() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.watched)
}

// Close ends the thread. The descriptors that it watched stay open.
func (p *Poller) Close() error {
	_, err := p.wake.Write([]byte{1, 0, 0, 0, 0, 0, 0, 1}) // more than 0 on every machine
	if err != nil {
		return err
	}
	<-p.done
	p.mu.Lock()
	defer p.mu.Unlock()
	unix.Close(p.epoll)
	p.epoll = -1
	return p.wake.Close()
}
