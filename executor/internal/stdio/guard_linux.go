package stdio

import (
	"bytes"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func threadNumber() int { return unix.Gettid() }

// waitsForLock reports whether a thread of this process sleeps and no signal would wake
// it up: state D, behind the name in /proc/PID/stat.
func waitsForLock(thread int) bool {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/stat", thread))
	_, rest, _ := bytes.Cut(stat, []byte(") "))
	return bytes.HasPrefix(rest, []byte("D"))
}
