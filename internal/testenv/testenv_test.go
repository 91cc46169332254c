package testenv_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/internal/testenv"
)

func TestASkippedTestIsNoted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "skips")
	t.Setenv(testenv.Skips, file)
	t.Setenv(testenv.RequireAll, "")
	for _, what := range []string{"a moon", "a sun"} {
		testenv.Missing(skipping{t}, what, "build\none")
	}
	text, err := os.ReadFile(file)
	want := t.Name() + ": a moon is missing: build one\n" + t.Name() + ": a sun is missing: build one\n"
	if err != nil || string(text) != want {
		t.Errorf("%v:\n%swant\n%s", err, text, want)
	}
}

// skipping is a test that does not really end.
type skipping struct{ testing.TB }

func (skipping) Skipf(string, ...any) {}

func TestAnOutputIsAwaitedWhileItIsWritten(t *testing.T) {
	var o testenv.Output
	begun, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		o.Write([]byte("rea"))
		<-begun
		o.Write([]byte("dy, "))
		o.Write([]byte("steady"))
	}()
	o.Await(t, "rea")
	close(begun)
	o.Await(t, "ready, steady")
	<-ended
	if got := o.String(); got != "ready, steady" {
		t.Errorf("the output is %q", got)
	}
}
