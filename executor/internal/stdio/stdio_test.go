//go:build unix

package stdio_test

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor/internal/stdio"
)

func TestDrainBringsAllOutputOfAProcessThoughAChildHoldsItOpen(t *testing.T) {
	var out bytes.Buffer
	p, err := stdio.New(&out)
	if err != nil {
		t.Fatal(err)
	}
	// The grandchild keeps stdout for longer than any test runs.
	cmd := exec.Command("sh", "-c", "sleep 1000 & echo $! >&2; head -c 300000 /dev/zero | tr '\\0' x")
	cmd.Stdout = p.Child
	var pid strings.Builder
	stderr, err := stdio.New(&pid)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = stderr.Child
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Started()
	stderr.Started()
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	p.Drain()
	stderr.Drain()
	p.Close()
	stderr.Close()
	if out.Len() != 300000 {
		t.Errorf("%d bytes arrived, want 300000", out.Len())
	}
	if err := exec.Command("kill", "-9", strings.TrimSpace(pid.String())).Run(); err != nil {
		t.Errorf("killing the grandchild %q: %v", pid.String(), err)
	}
}

func TestAFileIsHandedToTheProcessItself(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	p, err := stdio.New(f)
	if err != nil {
		t.Fatal(err)
	}
	p.Started()
	p.Drain()
	p.Close()
	if p.Child != f {
		t.Error("the child got another file")
	}
	if _, err := f.WriteString("still open"); err != nil {
		t.Error(err)
	}
}

func TestNoWriterIsTheNullDevice(t *testing.T) {
	p, err := stdio.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Child.Name() != os.DevNull {
		t.Errorf("the output goes to %s", p.Child.Name())
	}
	p.Started()
	p.Close()
}
