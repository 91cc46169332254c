package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/daemon"
)

func TestOnlyThisMachineIsListenedTo(t *testing.T) {
	for listen, allowed := range map[string]bool{
		"127.0.0.1:0": true, "[::1]:8889": true, "localhost:1": true, "127.8.9.10:1": true,
		"0.0.0.0:1": false, ":8889": false, "10.0.0.1:1": false, "example.com:1": false, "127.0.0.1": false, "": false,
	} {
		var s settings
		err := daemon.Load(&s, []string{"-listen", listen})
		if (err == nil) != allowed {
			t.Errorf("-listen %q: %v", listen, err)
		}
		if err != nil && !strings.Contains(err.Error(), "want an address of this machine alone") {
			t.Errorf("-listen %q: %v", listen, err)
		}
	}
}

func TestPagesOfOthersAreNotServed(t *testing.T) {
	h := localOnly(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for _, c := range []struct {
		host, origin string
		want         int
	}{
		{"127.0.0.1:8889", "", http.StatusNoContent},
		{"localhost", "", http.StatusNoContent},
		{"[::1]:8889", "", http.StatusNoContent},
		{"evil.example:8889", "", http.StatusForbidden},
		{"127.0.0.1.evil.example", "", http.StatusForbidden},
		{"127.0.0.1:8889", "http://evil.example", http.StatusForbidden},
		{"127.0.0.1:8889", "null", http.StatusForbidden},
	} {
		r := httptest.NewRequest("POST", "/v1/desire", nil)
		r.Host = c.host
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("host %q, origin %q: %d, want %d", c.host, c.origin, w.Code, c.want)
		}
	}
}

func TestTheDataIsWhereProgramsKeepTheirs(t *testing.T) {
	home := t.TempDir()
	for _, c := range []struct{ home, state, want string }{
		{home, "", filepath.Join(home, ".local", "state", "diego-allinone")},
		{home, "/var/state", "/var/state/diego-allinone"},
		{filepath.Join(home, "nowhere"), "", filepath.Join(os.TempDir(), "diego-allinone-")},
		{"", "", filepath.Join(os.TempDir(), "diego-allinone-")},
	} {
		t.Setenv("HOME", c.home)
		t.Setenv("XDG_STATE_HOME", c.state)
		if got := (&settings{}).data(); !strings.HasPrefix(got, c.want) {
			t.Errorf("home %q, state %q: %q, want %q", c.home, c.state, got, c.want)
		}
	}
	if got := (&settings{Data: "here"}).data(); got != "here" {
		t.Errorf("-data here: %q", got)
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
