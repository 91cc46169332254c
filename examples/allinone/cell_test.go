package main

import (
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/daemon"
)

func TestACellWhoseContainersAloneWouldShareTheHostsIDsIsRefused(t *testing.T) {
	own, shared := &daemon.Backend{}, &daemon.Backend{SharedIDs: true, Lacks: []string{"uids and gids of its own: no space left on device"}}
	for _, test := range []struct {
		name        string
		cell, other *daemon.Backend
		want        string
	}{
		{"all have their own", own, own, ""},
		{"all share", shared, shared, ""},
		{"one shares", shared, own, "cell-2: its containers would share the host's uids and gids, unlike those of other cells (it lacks uids and gids of its own: no space left on device)"},
	} {
		err := (&cell{id: "cell-2", backend: test.cell}).isolatesAs(test.other)
		if (err != nil) != (test.want != "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}
