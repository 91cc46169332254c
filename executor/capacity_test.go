package executor_test

import (
	"errors"
	"testing"

	"github.com/diegosdk/diego/executor"
)

func TestACapacityErrorNamesOnlyWhatIsLacking(t *testing.T) {
	have := executor.Capacity{MemoryMB: 10, DiskMB: 20, Containers: 1, PIDs: 5}
	need := executor.Capacity{MemoryMB: 4, DiskMB: 25, Containers: 2, PIDs: 5}
	if sum := have.Minus(need).Plus(need); !sum.Equal(have) {
		t.Errorf("less and more again is %+v", sum)
	}
	var err error = &executor.CapacityError{GUID: "c1", Lacks: have.Lacks(need)}
	if !errors.Is(err, executor.ErrCapacity) {
		t.Error("the error is not ErrCapacity")
	}
	if got, want := err.Error(), `insufficient resources for container "c1": 5 MiB of disk, 1 container more would have to be free`; got != want {
		t.Errorf("the error is %q, want %q", got, want)
	}
}
