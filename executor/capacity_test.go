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

func TestACapacityIsReadAsItIsWritten(t *testing.T) {
	for _, c := range []executor.Capacity{
		{MemoryMB: 512}, {DiskMB: 1, Containers: 1, PIDs: 1}, {MemoryMB: 1, DiskMB: 2, Containers: 3, PIDs: 4},
		{Containers: 1, Extra: executor.Amounts{"gpu": 2, "licence of x": 1}},
	} {
		if got, err := executor.ParseCapacity(c.String()); err != nil || !got.Equal(c) {
			t.Errorf("%q is read as %+v, %v", c, got, err)
		}
	}
	for _, text := range []string{"", "512", "MiB of memory", "512 MiB of memory, ", "1 containers", "2 gpu, 1 container", "1 gpu, 1 gpu", "0 processes", "-1 gpu", "99999999999999999999 gpu"} {
		if got, err := executor.ParseCapacity(text); err == nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
