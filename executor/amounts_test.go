package executor_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
)

func TestAmountsAddUpByName(t *testing.T) {
	a, b := executor.Amounts{"gpu": 4, "fpga": 1}, executor.Amounts{"gpu": 3, "license": 2}
	for _, tt := range []struct {
		name      string
		got, want executor.Amounts
	}{
		{"plus", a.Plus(b), executor.Amounts{"gpu": 7, "fpga": 1, "license": 2}},
		{"minus", a.Minus(b), executor.Amounts{"gpu": 1, "fpga": 1, "license": -2}},
		{"lacks", a.Lacks(b), executor.Amounts{"license": 2}},
		{"lacks nothing", a.Lacks(executor.Amounts{"gpu": 4, "license": 0}), nil},
		{"plus nothing", a.Plus(executor.Amounts{"license": 0}), a},
		{"none and some", executor.Amounts(nil).Plus(b), b},
		{"none without some", executor.Amounts(nil).Minus(executor.Amounts{"gpu": 1}), executor.Amounts{"gpu": -1}},
	} {
		if diff := cmp.Diff(tt.want, tt.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
	if diff := cmp.Diff(executor.Amounts{"gpu": 4, "fpga": 1}, a); diff != "" {
		t.Errorf("an operand has changed:\n%s", diff)
	}
	if got := a.Plus(executor.Amounts{"license": 0}).String(); got != "1 fpga, 4 gpu" {
		t.Errorf("got %q", got)
	}
}

func TestCapacitiesWithFurtherResourcesAreComparedByAmount(t *testing.T) {
	some := executor.Capacity{MemoryMB: 1, Extra: executor.Amounts{"gpu": 1}}
	for _, tt := range []struct {
		name  string
		other executor.Capacity
		want  bool
	}{
		{"the same", executor.Capacity{MemoryMB: 1, Extra: executor.Amounts{"gpu": 1, "fpga": 0}}, true},
		{"more", executor.Capacity{MemoryMB: 1, Extra: executor.Amounts{"gpu": 2}}, false},
		{"none", executor.Capacity{MemoryMB: 1}, false},
		{"another field", executor.Capacity{MemoryMB: 2, Extra: executor.Amounts{"gpu": 1}}, false},
	} {
		if got := some.Equal(tt.other); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
	if got := some.String(); got != "1 MiB of memory, 1 gpu" {
		t.Errorf("got %q", got)
	}
}

func TestAmountsThatCannotBeAreRefused(t *testing.T) {
	many := executor.Amounts{}
	for i := range executor.MaxAmounts + 1 {
		many[fmt.Sprintf("r%02d", i)] = 1
	}
	for _, tt := range []struct {
		name    string
		amounts executor.Amounts
		want    string
	}{
		{"none", nil, ""},
		{"some", executor.Amounts{"gpu": 2, "amd.com/gpu": 0, "largest": executor.MaxAmount}, ""},
		{"negative", executor.Amounts{"gpu": -1}, "extra_resources.gpu: -1: want at least 0"},
		{"absurd", executor.Amounts{"gpu": executor.MaxAmount + 1}, "extra_resources.gpu: 1099511627777: want at most 1099511627776"},
		{"without a name", executor.Amounts{"": 1}, "extra_resources: want 1 to 255 bytes of UTF-8 without NUL"},
		{"of two lines", executor.Amounts{"a\nb": 1}, "extra_resources: a\nb: want a text without line ends and other control characters"},
		{"of a field", executor.Amounts{"Memory": 1}, "extra_resources: Memory: want a name other than memory, memory_mb, disk, disk_mb, containers, pids, max_pids"},
		{"too many", many, "extra_resources: 17 names: want at most 16"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var v executor.Validator
			executor.Resources{Extra: tt.amounts}.Validate(&v)
			var got string
			if err := v.Err(); err != nil {
				got = strings.TrimPrefix(err.Error(), "invalid input: ")
			}
			if got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestResourcesWithoutFurtherOnesLookAsBefore(t *testing.T) {
	for _, tt := range []struct {
		value any
		want  string
	}{
		{executor.Resources{MemoryMB: 1}, `{"memory_mb":1,"disk_mb":0,"max_pids":0}`},
		{executor.Resources{Extra: executor.Amounts{"gpu": 2, "fpga": 1}}, `{"memory_mb":0,"disk_mb":0,"max_pids":0,"extra_resources":{"fpga":1,"gpu":2}}`},
		{executor.Capacity{Containers: 1}, `{"memory_mb":0,"disk_mb":0,"containers":1}`},
	} {
		got, err := json.Marshal(tt.value)
		if err != nil || string(got) != tt.want {
			t.Errorf("got %s, %v, want %s", got, err, tt.want)
		}
	}
}
