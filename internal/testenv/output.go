package testenv

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long a test waits for an output.
const patience = time.Minute

// An Output is a writer whose text a test reads, or waits for, while a program
// writes it. The zero value is ready to use. Its methods may be called
// concurrently.
type Output struct {
	mu   sync.Mutex
	text []byte
	more chan struct{} // closed by the next Write; nil if nobody waits
}

// Write implements [io.Writer]. It never fails.
func (o *Output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, p...)
	if o.more != nil {
		close(o.more)
		o.more = nil
	}
	return len(p), nil
}

// String is what was written so far.
func (o *Output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return string(o.text)
}

// Await waits until the output contains text. The test fails, and ends, if that
// takes longer than a minute.
func (o *Output) Await(t testing.TB, text string) {
	t.Helper()
	for late := time.After(patience); ; {
		o.mu.Lock()
		if o.more == nil {
			o.more = make(chan struct{})
		}
		said, more := string(o.text), o.more
		o.mu.Unlock()
		if strings.Contains(said, text) {
			return
		}
		select {
		case <-more:
		case <-late:
			t.Fatalf("%q does not come; the output is\n%s", text, said)
		}
	}
}
