//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// liftOpenFiles lifts the limit of open files of the whole host, as systemd does.
// Open files count as memory of their container, and that bounds them. But with
// the host's limit, a few large containers could use up the open files of all
// others. It returns what keeps it from that, or "". sysctl is /proc/sys.
func liftOpenFiles(sysctl string) (missing string) {
	limit := filepath.Join(sysctl, "fs/file-max")
	most := strconv.Itoa(math.MaxInt64)
	text, err := os.ReadFile(limit)
	now := strings.TrimSpace(string(text))
	if err == nil && now != most {
		err = os.WriteFile(limit, []byte(most), 0)
	}
	if err != nil {
		return fmt.Sprintf("a few containers can use up the open files of this host (fs.file-max %s), and the daemon cannot lift that limit: %v; set fs.file-max=%s", now, err, most)
	}
	return ""
}
