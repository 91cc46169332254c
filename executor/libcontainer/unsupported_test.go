//go:build !linux || !cgo || !(amd64 || arm64)

package libcontainer_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer"
)

func TestWhereThereAreNoContainersNewAndProbeSayWhyAndWhatToDo(t *testing.T) {
	b, newErr := libcontainer.New(libcontainer.Options{Dir: t.TempDir()})
	if b != nil {
		t.Error("there is a backend")
	}
	host, probeErr := new(libcontainer.Backend).Probe(t.Context())
	for call, err := range map[string]error{"New": newErr, "Probe": probeErr} {
		if !errors.Is(err, executor.ErrUnsupported) {
			t.Errorf("%s: the error is %v", call, err)
			continue
		}
		for _, part := range []string{"Linux on amd64 or arm64", "CGO_ENABLED=1", "this is " + runtime.GOOS + "/" + runtime.GOARCH, "use the process backend"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", call, err, part)
			}
		}
	}
	if host.Backend != "libcontainer" || host.Isolated || host.Has(executor.FeatureMemoryLimit) {
		t.Errorf("the host is %+v", host)
	}
	if err := new(libcontainer.Backend).Close(); err != nil {
		t.Error(err)
	}
}

func TestNothingIsMadeWhereThereAreNoContainers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cell")
	libcontainer.New(libcontainer.Options{Dir: dir})
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory is there: %v", err)
	}
}
