package main

import (
	"slices"
	"testing"

	"github.com/diegosdk/diego/rep"
)

func TestInstancesOfEqualUseAreInTheOrderOfTheirIndices(t *testing.T) {
	var list []usageDoc
	for _, index := range []int{10, 2, 0} {
		list = append(list, usageDoc{"cell-1", rep.ContainerUsage{ProcessGUID: "web", Index: &index}})
	}
	list = append(list, usageDoc{"cell-1", rep.ContainerUsage{TaskGUID: "sum"}})
	sortUsages(list, "cpu")
	var names []string
	for i := range list {
		names = append(names, list[i].name())
	}
	if want := []string{"task sum", "web/0", "web/2", "web/10"}; !slices.Equal(names, want) {
		t.Errorf("the order is %q, want %q", names, want)
	}
}
