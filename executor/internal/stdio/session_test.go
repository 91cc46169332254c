//go:build unix

package stdio

import (
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
		o := &output{f: in}
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
