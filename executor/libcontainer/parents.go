//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"runtime"
	"sync"
)

// The kernel ends a container's first process when the thread that has forked it ends, as
// it does when the daemon is killed. The first process would see that by its socket too,
// but not as long as another thread of the daemon waits for a lock that a process in a
// container holds; see [stdio.Guard]. So only threads that last as long as the daemon
// fork first processes. There are as many as are forked at a time.
var parents struct {
	mu   sync.Mutex
	idle []chan func()
}

// asParent calls f on one of these threads.
func asParent(f func()) {
	parents.mu.Lock()
	var thread chan func()
	if n := len(parents.idle); n > 0 {
		thread, parents.idle = parents.idle[n-1], parents.idle[:n-1]
	}
	parents.mu.Unlock()
	if thread == nil {
		thread = make(chan func())
		go func() {
			runtime.LockOSThread() // for good
			for f := range thread {
				f()
			}
		}()
	}
	done := make(chan struct{})
	thread <- func() {
		defer close(done)
		f()
	}
	<-done
	parents.mu.Lock()
	defer parents.mu.Unlock()
	parents.idle = append(parents.idle, thread)
}
