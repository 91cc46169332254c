//go:build unix

package process

import (
	"context"
	"errors"
	"testing"

	"github.com/diegosdk/diego/executor"
)

// What is begun in a container may wait for a file system that hangs.
func TestADeletionEndsWithItsContextWhileAStartGoesOn(t *testing.T) {
	b, err := New(Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Create(t.Context(), executor.ContainerSpec{GUID: "c"}); err != nil {
		t.Fatal(err)
	}
	c := b.containers["c"]
	c.life.RLock() // as a start does
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Delete(ctx, "c"); !errors.Is(err, context.Canceled) {
		t.Errorf("Delete: %v", err)
	}
	c.life.RUnlock()
	if err := b.Delete(t.Context(), "c"); err != nil {
		t.Error(err)
	}
}
