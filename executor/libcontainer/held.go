//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import "time"

// pipePatience is for how long a container may keep the daemon from its own output; see
// [stdio.Guard]. A program may do so without wanting it, while its memory comes from a
// slow disk.
const pipePatience = 3 * time.Second

// watchPipes ends containers in which a process holds the lock of a pipe from the daemon
// for longer than pipePatience, until done is closed.
func (b *Backend) watchPipes(done <-chan struct{}) {
	for {
		select {
		case <-done:
			return
		case <-time.After(greedPause):
		}
		for _, c := range b.made() {
			if c.pipes.Stuck(pipePatience, "pipe") {
				c.endFor("kept the daemon from its output, or from its input", 0)
				// The first process may wait for the same lock, and then kills nobody.
				c.cgroup.KillOthers(c.initPID)
			}
		}
	}
}
