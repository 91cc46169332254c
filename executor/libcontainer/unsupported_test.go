//go:build !linux || !cgo || !(amd64 || arm64)

package libcontainer_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/libcontainer"
)

func TestWhereThereAreNoContainersNewSaysWhy(t *testing.T) {
	_, err := libcontainer.New(libcontainer.Options{Dir: t.TempDir()})
	if !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), "cgo") {
		t.Errorf("the error is %v", err)
	}
}
