//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheLimitOfOpenFilesOfTheHostIsLiftedOrMissed(t *testing.T) {
	const most = "9223372036854775807"
	for name, test := range map[string]struct{ before, after, missing string }{
		"low":    {"2466177\n", most, ""},
		"lifted": {most + "\n", most + "\n", ""},
		"none":   {"", "", "the daemon cannot lift that limit: open SYSCTL/fs/file-max: no such file or directory; set fs.file-max=" + most},
	} {
		t.Run(name, func(t *testing.T) {
			sysctl := t.TempDir()
			limit := filepath.Join(sysctl, "fs/file-max")
			if err := os.Mkdir(filepath.Dir(limit), 0o755); err != nil {
				t.Fatal(err)
			}
			if test.before != "" {
				if err := os.WriteFile(limit, []byte(test.before), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			missing := strings.ReplaceAll(liftOpenFiles(sysctl), sysctl, "SYSCTL")
			if after, _ := os.ReadFile(limit); string(after) != test.after {
				t.Errorf("the limit is %q, want %q", after, test.after)
			}
			if (missing == "") != (test.missing == "") || !strings.HasSuffix(missing, test.missing) {
				t.Errorf("missing is %q, want %q at its end", missing, test.missing)
			}
		})
	}
}

func TestABackendLiftsTheLimitOfOpenFiles(t *testing.T) {
	newFixture(t)
	const limit = "/proc/sys/fs/file-max"
	text, err := os.ReadFile(limit)
	if err != nil || strings.TrimSpace(string(text)) != "9223372036854775807" {
		t.Errorf("%s is %s: %v", limit, text, err)
	}
}
