// Package life locks what orders the beginnings in a container and its end. What
// begins holds a mutex for reading, what ends everything holds it for writing.
// Either may wait for a file system that hangs, so nobody waits for the other
// without end.
package life

import (
	"context"
	"sync"
	"time"
)

// pause is between two looks, and doubles up to maxPause.
const (
	pause    = time.Millisecond
	maxPause = 50 * time.Millisecond
)

// Lock locks mu for writing. Its error is ctx's.
func Lock(ctx context.Context, mu *sync.RWMutex) error {
	for next := pause; !mu.TryLock(); next = min(2*next, maxPause) {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(next):
		}
	}
	return nil
}

// RLock locks mu for reading, unless over returns an error: it asks before each
// look, and once more when it has locked mu.
func RLock(mu *sync.RWMutex, over func() error) error {
	for next := pause; ; next = min(2*next, maxPause) {
		if err := over(); err != nil {
			return err
		}
		if mu.TryRLock() {
			break
		}
		time.Sleep(next)
	}
	err := over()
	if err != nil {
		mu.RUnlock()
	}
	return err
}
