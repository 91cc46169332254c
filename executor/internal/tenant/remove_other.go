//go:build !unix

package tenant

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
)

// RemoveAll removes what is at a path of the host, with everything below it,
// and follows no link. What is not there is no error.
func RemoveAll(_ context.Context, path string) error { return os.RemoveAll(path) }

// RemoveAll is the function RemoveAll for what lies below r.
func (r *Root) RemoveAll(_ context.Context, name string) error { return r.root.RemoveAll(name) }

func diskUsage(info fs.FileInfo) int64 { return info.Size() }

// Measure adds up what a directory of the host and everything below it weigh.
// What cannot be read counts as nothing.
func Measure(ctx context.Context, path string, of func(fs.FileInfo) int64) (total int64) {
	filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		if info, err := d.Info(); err == nil {
			total += of(info)
		}
		return ctx.Err()
	})
	return total
}
