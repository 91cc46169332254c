//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor/libcontainer/internal/cgroup"
)

// Who watches a node (inotify) is told what everybody does with it, and everybody waits
// for that. So the nodes of a container are nobody else's.
func TestNoTwoContainersShareADeviceNorDoesOneWithTheHost(t *testing.T) {
	eachIDs(t, func(t *testing.T, ids func(*Options)) {
		f := newFixture(t, ids)
		owners := map[string]string{} // by file
		for _, d := range cgroup.DeviceNodes() {
			var file unix.Stat_t
			if err := unix.Stat(d.Path, &file); err != nil {
				t.Fatal(err)
			}
			owners[fmt.Sprintf("%d:%d", file.Dev, file.Ino)] = "the host's " + d.Path
		}
		var paths []string
		for _, d := range cgroup.DeviceNodes() {
			paths = append(paths, d.Path)
		}
		for range 2 {
			guid, _ := f.create()
			r := f.as("root", guid, "stat -c '%n %d:%i %t:%T %a' "+strings.Join(append(slices.Clone(paths), "/proc/kmsg", "/proc/keys"), " "))
			r.end()
			for line := range strings.Lines(r.stdout.String()) {
				fields := strings.Fields(line)
				if !strings.HasPrefix(fields[0], "/dev/") {
					// A path that is masked shows the container's own null device.
					if owner := owners[fields[1]]; owner != "the "+filepath.Base(os.DevNull)+" of "+guid {
						t.Errorf("%s in %s is %q", fields[0], guid, owner)
					}
					continue
				}
				if owner := owners[fields[1]]; owner != "" {
					t.Errorf("%s of %s is %s", fields[0], guid, owner)
				}
				owners[fields[1]] = "the " + filepath.Base(fields[0]) + " of " + guid
				if fields[3] != "666" {
					t.Errorf("%s has the mode %s", fields[0], fields[3])
				}
			}
			if len(owners) < 2*len(paths) {
				t.Fatalf("of the devices there are %v", owners)
			}
		}
	})
}
