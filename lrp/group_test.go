package lrp_test

import (
	"testing"

	"github.com/diegosdk/diego/lrp"
)

func TestTheActiveGroupIsTheActiveDefinitionsOrElseAnother(t *testing.T) {
	x := &scenario{slots: map[int]lrp.Slot{}, now: epoch}
	for _, step := range []struct{ command, want string }{
		{"create v1 1", ""},
		{"missing", "UNCLAIMED"},
		{"start i1", "RUNNING i1"},
		{"update v2", "RUNNING i1"}, // an index that runs is never "not found"
		{"roll", "v2 UNCLAIMED"},
		{"claim i2 v2", "v2 CLAIMED i2"},
		{"delete", "RUNNING i1"},
	} {
		if err := x.do(step.command); err != nil || x.err != nil {
			t.Fatal(err, x.err)
		}
		got := ""
		if r := x.slot().ActiveGroup(x.deployment).Resolve(); r != nil {
			got = record(r)
		}
		if got != step.want {
			t.Errorf("after %s: got %q, want %q", step.command, got, step.want)
		}
	}
}
