package sample

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
)

func TestTheWebAppSaysWhoItIsAndEndsWhenAsked(t *testing.T) {
	exited := make(chan int, 1)
	h := handler(func(name string) string { return map[string]string{"INSTANCE_INDEX": "2"}[name] }, func(status int) { exited <- status })
	for _, c := range []struct {
		method, path string
		status       int
		want         string
	}{
		{"GET", "/", http.StatusOK, "Hello from instance 2, process "},
		{"GET", "/", http.StatusOK, "This is request 2."},
		{"GET", "/health", http.StatusOK, "ok"},
		{"POST", "/exit/256", http.StatusBadRequest, "want an exit status from 0 to 255"},
		{"GET", "/exit/3", http.StatusMethodNotAllowed, ""},
		{"POST", "/exit/3", http.StatusOK, "Instance 2 ends with exit status 3."},
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(c.method, c.path, nil))
		body, _ := io.ReadAll(w.Result().Body)
		if w.Code != c.status || !strings.Contains(string(body), c.want) {
			t.Errorf("%s %s: %d %q; want %d %q", c.method, c.path, w.Code, body, c.status, c.want)
		}
	}
	if got := <-exited; got != 3 {
		t.Errorf("it ends with %d", got)
	}
}

func TestTheTaskLeavesItsResultWhereItIsLookedFor(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("DIEGO_CONTAINER_DIR", dir)
	for below, want := range map[string]string{"0": "0 primes below 0", "3": "1 primes below 3", "1000": "168 primes below 1000"} {
		if status := Main([]string{"count", below}); status != 0 {
			t.Fatalf("exit status %d", status)
		}
		if got, err := os.ReadFile(filepath.Join(dir, ResultFile)); err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	for _, wrong := range [][]string{{"count", "many"}, {"count"}, {"dance"}} {
		if Main(wrong) != 1 {
			t.Errorf("%q is accepted", wrong)
		}
	}
}

func TestWhatIsDesiredIsValid(t *testing.T) {
	var v executor.Validator
	l := LRP(3)
	if err := l.Validate(); err != nil {
		t.Error(err)
	}
	Task().Definition.RunInfo.Validate(&v)
	if err := v.Err(); err != nil {
		t.Error(err)
	}
}

func TestTheVolumeHasTheBinary(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "volume")
	for range 2 { // a second time while somebody may run it
		v, err := NewVolume(dir)
		if err != nil {
			t.Fatal(err)
		}
		path, err := v.Mount(t.Context(), "c1", mount())
		if err != nil {
			t.Fatal(err)
		}
		own, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		want, err := os.Stat(own)
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.Stat(filepath.Join(path, binary))
		if err != nil || got.Size() != want.Size() || got.Mode().Perm() != 0o755 {
			t.Errorf("got %v, %v", got, err)
		}
		if entries, _ := os.ReadDir(path); len(entries) != 1 {
			t.Errorf("left behind: %v", entries)
		}
		if err := v.Unmount(t.Context(), "c1", mount()); err != nil {
			t.Error(err)
		}
	}
	if _, err := NewVolume(filepath.Join("/proc", "volume")); err == nil {
		t.Error("a volume where nothing can be written")
	}
}

func TestAnEarlierCopyIsGoodEnoughIfThereCanBeNoNewOne(t *testing.T) {
	dir := t.TempDir()
	noCopy := func() {
		if err := os.MkdirAll(filepath.Join(dir, binary+".new", "in the way"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	noCopy()
	if _, err := NewVolume(dir); err == nil {
		t.Error("without any copy there is a volume")
	}
	if _, err := NewVolume(dir); err != nil {
		t.Fatal(err)
	}
	noCopy()
	if _, err := NewVolume(dir); err != nil {
		t.Errorf("with an earlier copy: %v", err)
	}
}
