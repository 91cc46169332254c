//go:build !unix

package daemon

import "math"

// maxDescriptors is for systems that do not limit them.
func maxDescriptors() uint64 { return math.MaxUint64 }
