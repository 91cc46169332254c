//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"runtime"
	"sync"
	"testing"

	"github.com/diegosdk/diego/executor"
)

// Processes that end without a pause, each a child of the first process, keep nobody
// waiting: not those who start something in their container or another one, nor those
// who end it.
func TestAFloodOfOrphansHoldsUpNobody(t *testing.T) {
	f := newFixture(t)
	flooded, _ := f.create(func(s *executor.ContainerSpec) { s.Resources.MaxPIDs = 200 })
	other, _ := f.create()
	// clone with CLONE_PARENT makes a child of the first process; the other is exit.
	calls := map[string][2]string{"amd64": {"56, 0x8011, 0, 0, 0, 0", "60"}, "arm64": {"220, 0x8011, 0, 0, 0, 0", "93"}}[runtime.GOARCH]
	for range 3 {
		f.as("nobody", flooded, `exec perl -e '$| = 1; print "floods\n"; while (1) { syscall(`+calls[1]+`, 0) if syscall(`+calls[0]+`) == 0 }'`).says("floods")
	}
	var starts sync.WaitGroup
	for range 32 { // each asks about the orphans as long as it has no number
		starts.Go(func() {
			for range 5 {
				if r, err := f.try("nobody", flooded, "exit 0"); err == nil {
					<-r.exit
				}
			}
		})
	}
	for range 20 {
		if e := f.as("nobody", other, "exit 0").end(); !e.Success() {
			t.Errorf("in another container a process ended with %v", e)
		}
	}
	starts.Wait()
	if err := f.Signal(f.ctx, flooded, executor.Kill); err != nil {
		t.Error(err)
	}
	f.delete(flooded)
}
