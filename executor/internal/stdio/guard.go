//go:build unix

package stdio

import (
	"runtime"
	"sync"
	"syscall"
	"time"
)

// A Guard makes the calls on the pipes and terminals between the daemon and the processes
// of a container. They wait for no data, but the kernel locks a pipe for each call, and a
// terminal for some. A process of the container that has the same pipe or terminal can
// hold that lock for as long as it likes: the kernel keeps the lock while it waits for the
// memory of the process, or for a socket from which the process moves data (splice). Only
// the end of that process ends the wait for the lock; not even SIGKILL ends a daemon that
// waits. So the calls of a container take one thread, one after the other, and the owner of
// the Guard asks now and then whether one is Stuck. The zero value is ready for use. A nil
// Guard only makes the calls.
type Guard struct {
	one sync.Mutex // held by a call that may be waited for

	mu    sync.Mutex
	calls map[int]time.Time // by thread, those in progress
}

// call makes a call when those before it are over.
func (g *Guard) call(f func()) {
	if g == nil {
		f()
		return
	}
	g.one.Lock()
	defer g.one.Unlock()
	g.Watch(f)
}

// Watch makes a call at once, of any kind, if the kernel may wait for a container in it.
func (g *Guard) Watch(f func()) {
	if g == nil {
		f()
		return
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	thread := threadNumber()
	g.mu.Lock()
	if g.calls == nil {
		g.calls = make(map[int]time.Time)
	}
	g.calls[thread] = time.Now()
	g.mu.Unlock()
	defer func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		delete(g.calls, thread)
	}()
	f()
}

// once makes one call on a descriptor that does not block.
func (g *Guard) once(action func(int, []byte) (int, error), fd uintptr, p []byte) (n int, err error) {
	err = syscall.EINTR
	g.call(func() {
		for err == syscall.EINTR {
			n, err = action(int(fd), p)
		}
	})
	return max(n, 0), err
}

// Stuck reports whether a call has been waiting for a lock for longer than patience, in a
// function of the kernel whose name contains one of those texts, or in any if there are
// none. A thread that waits for a processor does not count.
func (g *Guard) Stuck(patience time.Duration, functions ...string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	for thread, began := range g.calls {
		if time.Since(began) > patience && waitsForLock(thread, functions) {
			return true
		}
	}
	return false
}
