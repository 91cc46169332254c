//go:build linux && cgo && (amd64 || arm64)

package pid1

import (
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/internal/nowait"
)

// A Poller waits for the messages of all first processes at once: it has one
// goroutine, however many there are, and none of them takes a thread. Its
// methods may be called concurrently.
type Poller struct {
	file *os.File // an epoll descriptor, which Go's own poller watches
	raw  syscall.RawConn
	done chan struct{}

	mu      sync.Mutex
	next    int32
	watched map[int32]watch
}

// A watch is a descriptor with what is called when there is news of it.
type watch struct {
	fd    int
	ready func() bool
}

// NewPoller starts a Poller, which Close ends.
func NewPoller() (*Poller, error) {
	fd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	p := &Poller{file: os.NewFile(uintptr(fd), "epoll"), done: make(chan struct{}), watched: make(map[int32]watch)}
	if p.raw, err = p.file.SyscallConn(); err != nil {
		p.file.Close()
		return nil, err
	}
	go p.run()
	return p, nil
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
	for p.next++; p.watched[p.next].ready != nil; p.next++ { // it has wrapped around, and that watch still lasts
	}
	key = p.next
	p.watched[key] = watch{fd, ready}
	controlErr := p.raw.Control(func(epoll uintptr) {
		err = unix.EpollCtl(int(epoll), unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: key})
	})
	if err == nil {
		err = controlErr
	}
	if err != nil {
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
		p.raw.Control(func(epoll uintptr) { unix.EpollCtl(int(epoll), unix.EPOLL_CTL_DEL, w.fd, nil) })
	}
}

func (p *Poller) run() {
	defer close(p.done)
	var room [64]unix.EpollEvent
	for {
		var events []unix.EpollEvent
		err := p.raw.Read(func(epoll uintptr) bool {
			events = nowait.Reported(int(epoll), room[:])
			return len(events) > 0
		})
		if err != nil {
			return
		}
		for _, e := range events {
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

// Close ends the goroutine. The descriptors that it watched stay open.
func (p *Poller) Close() error {
	err := p.file.Close()
	<-p.done
	return err
}
