package main

import (
	"net"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/fleetdir"
)

func TestOnlyThisMachineIsListenedTo(t *testing.T) {
	for listen, allowed := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:8889": true, "localhost:1": true, "127.8.9.10:1": true,
		"0.0.0.0:1": false, ":8889": false, "10.0.0.1:1": false, "example.com:1": false, "127.0.0.1": false, "": false,
	} {
		var s settings
		err := daemon.Load(&s, []string{"--listen", listen})
		if (err == nil) != allowed {
			t.Errorf("--listen %q: %v", listen, err)
		}
		if err != nil && !strings.Contains(err.Error(), "want an address of this machine alone") {
			t.Errorf("--listen %q: %v", listen, err)
		}
	}
}

func TestTheDataIsWhereItIsSaidOrWhereDiegoctlLooks(t *testing.T) {
	for data, want := range map[string]string{"": fleetdir.Default(), "here": "here"} {
		if got := (&settings{Data: data}).data(); got != want {
			t.Errorf("--data %q: %q, want %q", data, got, want)
		}
	}
}

// taken is an address that somebody listens at.
func taken(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().String()
}
