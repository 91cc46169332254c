//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestTheLimitOfOpenFilesOfTheHostIsLiftedOrMissed(t *testing.T) {
	const most = "9223372036854775807"
	for name, test := range map[string]struct{ before, after, missing string }{
		"low":    {"2466177\n", most, ""},
		"lifted": {most + "\n", most + "\n", ""},
		"none":   {"", "", "the daemon cannot lift that limit: open SYSCTL/fs/file-max: no such file or directory; set fs.file-max to " + most},
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
			missing := strings.ReplaceAll(liftLimits(sysctl), sysctl, "SYSCTL")
			if after, _ := os.ReadFile(limit); string(after) != test.after {
				t.Errorf("the limit is %q, want %q", after, test.after)
			}
			if (missing == "") != (test.missing == "") || !strings.HasSuffix(missing, test.missing) {
				t.Errorf("missing is %q, want %q at its end", missing, test.missing)
			}
		})
	}
}

func TestALimitOfTheHostIsLiftedAndNeverLowered(t *testing.T) {
	sysctl := t.TempDir()
	for file, text := range map[string]string{"fs/file-max": "9223372036854775807\n", "kernel/pty/max": "4096\n", "net/ipv4/tcp_max_orphans": "99999999\n", "net/ipv4/neigh/default/gc_thresh3": "1024\n",
		"kernel/pid_max": "32768\n", "kernel/threads-max": "5000000\n", "net/ipv4/tcp_mem": "1\t2\t9000000000000\n", "net/ipv4/udp_mem": "9000000000000\t9000000000000\t9000000000000\n"} {
		path := filepath.Join(sysctl, file)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if missing := liftLimits(sysctl); missing != "" {
		t.Error(missing)
	}
	half := strconv.FormatInt(halfOfMemory(), 10)
	for file, want := range map[string]string{"net/ipv4/tcp_mem": half + " " + half + " 9000000000000", "net/ipv4/udp_mem": "9000000000000\t9000000000000\t9000000000000\n",
		"kernel/pty/max": "1048576", "net/ipv4/tcp_max_orphans": "99999999\n", "net/ipv4/neigh/default/gc_thresh3": "131072",
		"kernel/pid_max": "4194304", "kernel/threads-max": "5000000\n"} {
		if got, err := os.ReadFile(filepath.Join(sysctl, file)); err != nil || string(got) != want {
			t.Errorf("%s is %q, want %q: %v", file, got, want, err)
		}
	}
}

func TestABackendLiftsLimitsOfTheHost(t *testing.T) {
	newFixture(t)
	for _, l := range lifted {
		text, err := os.ReadFile("/proc/sys/" + l.file)
		if now := strings.Join(strings.Fields(string(text)), " "); now != l.over(now) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is %s: %v", l.name, text, err)
		}
	}
}
