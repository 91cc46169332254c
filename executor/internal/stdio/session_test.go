//go:build unix

package stdio

import (
	"errors"
	"io"
	"os"
	"runtime"
	"testing"
	"time"
)

// A reader that is late finds that the deadline, which the end of the process sets,
// has passed. What the process has written must still come. The rounds differ in when
// the reader finds out.
func TestOutputThatIsReadLateComesWhole(t *testing.T) {
	for range 200 {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		o := &output{own: &file{f: in}}
		read := make(chan string)
		go func() {
			text, _ := io.ReadAll(o)
			read <- string(text)
		}()
		runtime.Gosched()
		_ = in.SetReadDeadline(time.Unix(1, 0))
		runtime.Gosched()
		o.ended.Store(true)
		_, _ = io.WriteString(out, "the last words")
		out.Close()
		if got := <-read; got != "the last words" {
			t.Fatalf("it reads %q", got)
		}
		in.Close()
	}
}

// Another process of a container can take hold of the output of a session, and write to
// it a little at a time when the session's program has ended.
func TestNobodyKeepsASessionOpenAfterItsProgramHasEnded(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	over := make(chan struct{})
	go func() {
		defer out.Close()
		for {
			select {
			case <-over:
				return
			case <-time.After(drainWait / 10):
				_, _ = out.Write([]byte{'x'})
			}
		}
	}()
	defer close(over)
	o := &output{own: &file{f: in}}
	o.end()
	began := time.Now()
	text, err := io.ReadAll(o)
	if took := time.Since(began); err != nil || took > 20*drainWait {
		t.Errorf("the output ends after %v and %d bytes, %v", took, len(text), err)
	}
}

// A process of the container may hold up the calls on one pipe of a session. Its close
// waits for those, and others who read comes back at once.
func TestAFileIsClosedByWhoClosesItWhenNobodyUsesItAnyMore(t *testing.T) {
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	var g Guard
	f := &file{f: in, guard: &g}
	read := make(chan error)
	go func() {
		_, err := (&output{own: f}).Read(make([]byte, 1))
		read <- err
	}()
	held, free := make(chan struct{}), make(chan struct{})
	go g.call(func() {
		close(held)
		<-free
	})
	<-held
	go func() { _, _ = out.Write([]byte("x")) }() // the reader has a call to make
	closed := make(chan error)
	go func() { closed <- f.close() }()
	for f.open() {
		runtime.Gosched()
	}
	if n, err := (&output{own: f}).Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Errorf("after the close it reads %d bytes, %v", n, err)
	}
	close(free)
	if err := <-read; err != nil && err != io.EOF {
		t.Errorf("who has been reading gets %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if err := f.close(); !errors.Is(err, os.ErrClosed) {
		t.Errorf("to close it again: %v", err)
	}
}
