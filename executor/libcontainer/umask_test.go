//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"bytes"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/diegosdk/diego/executor"
)

func TestUsersOfContainersGetThroughWhateverTheUmaskOfTheDaemon(t *testing.T) {
	eachIDs(t, func(t *testing.T, edit func(*Options)) {
		f := newFixture(t) // which skips where there are no containers
		old := syscall.Umask(0o077)
		defer syscall.Umask(old)
		// A directory of its own: the image is unpacked now.
		o := Options{Dir: filepath.Join(f.options.Dir, "another")}
		edit(&o)
		b, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		f = &fixture{TB: t, Backend: b, ctx: f.ctx}
		defer func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		}()
		guid, _ := f.create(withOwnBinary(t), func(c *executor.ContainerSpec) {
			c.Files = []executor.File{{Path: "/given/deep/file", Content: "given"}}
			c.Mounts = append(c.Mounts, executor.Mount{Source: c.Mounts[0].Source, Target: "/mounted/deep/exe"})
		})
		defer f.delete(guid)
		if err := f.StreamIn(f.ctx, guid, "/in/deep", "root", bytes.NewReader(tarOf(entry{name: "dir/", mode: 0o755}, entry{name: "dir/file", content: "streamed", mode: 0o644}))); err != nil {
			t.Fatal(err)
		}
		r := f.as("nobody", guid, "cat /given/deep/file /in/deep/dir/file && cmp -n 64 /mounted/deep/exe "+ownBinary+" && umask && stat -c %a / /etc /usr")
		if e := r.end(); !e.Success() || r.stdout.String() != "givenstreamed0022\n755\n755\n755\n" {
			t.Errorf("%v: %s%s", e, r.stdout, r.stderr)
		}
	})
}
