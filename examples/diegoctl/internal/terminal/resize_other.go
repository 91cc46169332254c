//go:build !unix

package terminal

import "os"

// windowChanges are not told.
func windowChanges() (<-chan os.Signal, func()) { return nil, func() {} }
