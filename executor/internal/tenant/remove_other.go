//go:build !unix

package tenant

import (
	"context"
	"io/fs"
	"os"
)

// RemoveAll removes what is at a path of the host, with everything below it,
// and follows no link. What is not there is no error.
func RemoveAll(_ context.Context, path string) error { return os.RemoveAll(path) }

// RemoveAll is the function RemoveAll for what lies below r.
func (r *Root) RemoveAll(_ context.Context, name string) error { return r.root.RemoveAll(name) }

func diskUsage(info fs.FileInfo) int64 { return info.Size() }
