//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// setOOMScoreAdjust changes how the kernel chooses this process, until the end
// of the test. It reports whether the kernel allows it.
func setOOMScoreAdjust(t *testing.T, n int) bool {
	t.Helper()
	before, err := os.ReadFile(oomScoreAdjustFile)
	if err != nil {
		t.Fatal(err)
	}
	err = os.WriteFile(oomScoreAdjustFile, []byte(strconv.Itoa(n)), 0)
	if errors.Is(err, unix.EACCES) {
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.WriteFile(oomScoreAdjustFile, before, 0); err != nil {
			t.Error(err)
		}
	})
	return true
}

func TestTheAdjustmentOfContainersIsNeverBelowZero(t *testing.T) {
	for own, want := range map[string]int{"-1000\n": 0, "-1\n": 0, "0\n": 0, "300\n": 300, "": 0, "x": 0} {
		if got := oomScoreAdjust(own); got != want {
			t.Errorf("with a daemon's %q it is %d, want %d", own, got, want)
		}
	}
}

func TestAContainerIsNotSparedAsItsDaemonIs(t *testing.T) {
	for _, test := range []struct {
		name       string
		own, after int
		want       string
	}{
		{"as it is by default", 0, 0, "0 0"},
		{"a daemon to be spared", -500, -500, "0 0"},
		{"a daemon never to be ended", -1000, -1000, "0 0"},
		{"a daemon to be ended early", 300, 300, "300 300"},
		{"what the daemon has is not inherited", 0, 300, "0 0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if !setOOMScoreAdjust(t, test.own) {
				// Without CAP_SYS_RESOURCE no daemon here can be spared.
				t.Logf("this kernel lets us not have %d", test.own)
				return
			}
			f := newFixture(t)
			setOOMScoreAdjust(t, test.after)
			guid, _ := f.create()
			r := f.as("nobody", guid, "echo $(cat /proc/1/oom_score_adj /proc/self/oom_score_adj)")
			r.end()
			if got := strings.TrimSpace(r.stdout.String()); got != test.want {
				t.Errorf("it is %q, want %q", got, test.want)
			}
		})
	}
}
