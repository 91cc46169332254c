package daemon

import (
	"strings"
	"testing"
)

type reaching struct{ Callbacks }

func (r *reaching) Check(report func(name, want string)) { r.CheckCallbacks(report) }

func TestNetworksInSettingsAreReadOrNamed(t *testing.T) {
	r := new(reaching)
	if err := Load(r, []string{"--callback-allow", "127.0.0.0/8,::1", "--callback-deny", "10.0.0.0/8"}); err != nil {
		t.Fatal(err)
	}
	if allow, deny := r.Networks(); len(allow) != 2 || allow[1].String() != "::1/128" || len(deny) != 1 || deny[0].String() != "10.0.0.0/8" {
		t.Errorf("allowed is %v, denied %v", allow, deny)
	}
	err := Load(new(reaching), []string{"--callback-deny", "metadata.internal"})
	if err == nil || !strings.Contains(err.Error(), `callback_deny: metadata.internal: want networks such as 10.0.0.0/8, or addresses: "metadata.internal" is not`) {
		t.Errorf("%v", err)
	}
}
