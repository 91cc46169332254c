//go:build unix

package daemon

import (
	"math"
	"syscall"
)

// maxDescriptors returns how many descriptors this process may have.
func maxDescriptors() uint64 {
	var limit syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit) != nil {
		return math.MaxUint64
	}
	return uint64(limit.Cur)
}
