//go:build unix

package system_test

import (
	"syscall"
	"time"
)

// cpuTime is what this process has used of the processors. On a busy machine it
// tells more than the time that has passed.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
