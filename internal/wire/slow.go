package wire

import (
	"errors"
	"slices"
	"sync"
	"time"
)

// A list is read from the store while its reader takes it, and sees one moment. So it
// keeps a connection of the store until its reader has nearly all of it, and the store
// has few connections. Readers that are slow must not take all of them.
const (
	// slowAfter is how long a reader may keep a list waiting in all before the list is
	// slow.
	slowAfter = time.Second
	// maxSlow is how many lists of a server may be slow at a time. When there is one
	// more, the one that has been slow longest is cut off.
	maxSlow = 4
	// A reader that has kept a list waiting keeps its place among the lists of its caller
	// for waitFactor times as long after the end, but not for longer than longestPause.
	// Else callers who begin a list anew as soon as it is cut off, or before it is slow,
	// would have the store all the time.
	waitFactor, longestPause = 10, 10 * time.Second
)

var errCutOff = errors.New("the list was cut off: its reader is slow, and there are others like it")

// markSlow notes that l is slow, and cuts a list off if there are too many. It may be
// called again.
func (s *Server) markSlow(l *listWriter) {
	s.mu.Lock()
	if l.made || slices.Contains(s.slow, l) {
		s.mu.Unlock()
		return
	}
	s.slow = append(s.slow, l)
	var most *listWriter
	if len(s.slow) > maxSlow {
		most = s.slow[0]
		most.made = true // it is not to come back
		s.slow = slices.Delete(s.slow, 0, 1)
	}
	s.mu.Unlock()
	if most != nil && most.deadline.cut() {
		s.ListCut()
		s.Logger.Debug("a list was cut off, because its reader is slow and so are others", "path", most.path)
	}
}

// forgetSlow says that all of l has been made: it needs the store no more.
func (s *Server) forgetSlow(l *listWriter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.made = true
	s.slow = slices.DeleteFunc(s.slow, func(other *listWriter) bool { return other == l })
}

// A writeDeadline is the deadline for writing an answer. Another goroutine may cut the
// answer off, even while it is being written.
type writeDeadline struct {
	set  func(time.Time) error
	gone chan struct{} // closed by cut

	mu   sync.Mutex
	over bool // the answer has ended: set may not be called any more
}

// move sets the deadline. It fails if the answer was cut off.
func (d *writeDeadline) move(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isCut() {
		return errCutOff
	}
	_ = d.set(t)
	return nil
}

// cut ends the answer now. It reports whether there was something to end.
func (d *writeDeadline) cut() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isCut() || d.over {
		return false
	}
	close(d.gone)
	_ = d.set(time.Unix(1, 0))
	return true
}

// end takes the deadline away when the answer has ended.
func (d *writeDeadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.over = true
	if !d.isCut() {
		_ = d.set(time.Time{})
	}
}

func (d *writeDeadline) isCut() bool {
	select {
	case <-d.gone:
		return true
	default:
		return false
	}
}
