package stdio

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func threadNumber() int { return unix.Gettid() }

// waitsForLock reports whether a thread of this process sleeps and no signal would wake
// it up: state D, behind the name in /proc/PID/stat. If the kernel names the function in
// which it sleeps, the name must contain text; it may also wait for memory of its own.
func waitsForLock(thread int, text string) bool {
	dir := fmt.Sprintf("/proc/self/task/%d/", thread)
	stat, _ := os.ReadFile(dir + "stat")
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	function, _ := os.ReadFile(dir + "wchan")
	return bytes.HasPrefix(rest, []byte("D")) && (len(function) < 2 || bytes.Contains(function, []byte(text)))
}
