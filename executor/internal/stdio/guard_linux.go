package stdio

import (
	"bytes"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

func threadNumber() int { return unix.Gettid() }

// waitsForLock reports whether a thread of this process sleeps and no signal would wake
// it up: state D, behind the name in /proc/PID/stat. If the kernel names the function in
// which it sleeps, the name must contain one of the texts, if there are any; it may also
// wait for memory of its own.
func waitsForLock(thread int, texts []string) bool {
	dir := fmt.Sprintf("/proc/self/task/%d/", thread)
	stat, _ := os.ReadFile(dir + "stat")
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	function, _ := os.ReadFile(dir + "wchan")
	named := func(text string) bool { return bytes.Contains(function, []byte(text)) }
	return bytes.HasPrefix(rest, []byte("D")) && (len(function) < 2 || len(texts) == 0 || slices.ContainsFunc(texts, named))
}
