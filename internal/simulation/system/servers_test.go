package system_test

import (
	"crypto/tls"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
)

// posing serves at an address with a good certificate, and counts what it is
// asked.
func posing(t *testing.T, a *authority, h http.HandlerFunc, name string, units ...string) (url string, asked *atomic.Int64) {
	t.Helper()
	asked = new(atomic.Int64)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		h(w, r)
	}))
	server.TLS = a.server(name, units...)
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	return server.URL, asked
}

func decline(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }

func TestAServerIsAskedOnlyForWhatItsCertificateSaysThatItIs(t *testing.T) {
	a := newAuthority(t)
	type ask func(o httpapi.ClientOptions) error
	remoteBBS := func(o httpapi.ClientOptions) error {
		c, err := httpapi.NewRemoteBBS(o)
		if err != nil {
			t.Fatal(err)
		}
		return c.Desire(t.Context(), desired("web", 1))
	}
	auctioneer := func(o httpapi.ClientOptions) error {
		c, err := httpapi.NewRemoteAuctioneer(o)
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.Plan(t.Context())
		return err
	}
	cell := func(o httpapi.ClientOptions) error {
		o.CellID = "cell-1"
		c, err := httpapi.NewRemoteCell(o)
		if err != nil {
			t.Fatal(err)
		}
		return c.Evacuate(t.Context())
	}
	dialled := func(o httpapi.ClientOptions) error {
		c, err := httpapi.Dial(o)(bbs.CellPresence{CellID: "cell-1", Address: o.Addresses[0]})
		if err != nil {
			t.Fatal(err)
		}
		_, err = c.State(t.Context())
		return err
	}
	for _, tt := range []struct {
		service string
		ask     ask
		server  string
		units   []string
		good    bool
	}{
		{"BBS", remoteBBS, "bbs", []string{"diego-bbs"}, true},
		{"BBS", remoteBBS, "bbs", []string{"diego-auctioneer"}, false},
		{"BBS", remoteBBS, "bbs", []string{"diego-cell", "diego-consumer", "diego-operator"}, false},
		{"BBS", remoteBBS, "bbs", nil, false},
		{"auctioneer", auctioneer, "a", []string{"diego-auctioneer"}, true},
		{"auctioneer", auctioneer, "a", []string{"diego-bbs"}, true},
		{"auctioneer", auctioneer, "a", []string{"diego-cell", "diego-consumer", "diego-operator"}, false},
		{"cell", cell, "cell-1", []string{"diego-cell"}, true},
		{"cell", cell, "cell-2", []string{"diego-cell"}, false},
		{"cell", cell, "", []string{"diego-cell"}, false},
		{"cell", cell, "cell-1", []string{"diego-consumer"}, false},
		{"cell", cell, "cell-1", []string{"diego-bbs", "diego-auctioneer", "diego-operator"}, false},
		{"cell", dialled, "cell-1", []string{"diego-cell"}, true},
		{"cell", dialled, "cell-2", []string{"diego-cell"}, false},
		{"cell", dialled, "cell-1", []string{"diego-consumer"}, false},
	} {
		url, asked := posing(t, a, decline, tt.server, tt.units...)
		config := a.client(a, time.Hour, "me", "diego-operator")
		for name, o := range map[string]httpapi.ClientOptions{
			"TLS":    {TLS: config},
			"NewTLS": {NewTLS: func() *tls.Config { return config }},
		} {
			o.Addresses, o.Attempts = []string{url}, 1
			asked.Store(0)
			err := tt.ask(o)
			if errors.Is(err, httpapi.ErrImpostor) == tt.good || (asked.Load() > 0) != tt.good {
				t.Errorf("%s of %q %v with %s: asked %d times, %v", tt.service, tt.server, tt.units, name, asked.Load(), err)
			}
			var impostor *httpapi.ImpostorError
			if !tt.good && (!errors.As(err, &impostor) || impostor.Service != tt.service || impostor.Server.Name != tt.server || !errors.Is(err, httpapi.ErrUnreachable)) {
				t.Errorf("%s of %q %v with %s: %v", tt.service, tt.server, tt.units, name, err)
			}
		}
	}
}

func TestALeaderThatIsNamedIsAskedOnlyIfItIsOne(t *testing.T) {
	a := newAuthority(t)
	impostor, asked := posing(t, a, decline, "bbs-2", "diego-cell")
	standby, _ := posing(t, a, func(w http.ResponseWriter, _ *http.Request) {
		body, err := httpapi.ProblemBody(&bbs.NotLeaderError{Role: "bbs", Leader: "bbs-2", Address: impostor})
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write(body)
	}, "bbs-1", "diego-bbs")
	c, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{
		Addresses: []string{standby}, TLS: a.client(a, time.Hour, "me", "diego-consumer"), Attempts: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Desire(t.Context(), desired("web", 1)); !errors.Is(err, httpapi.ErrImpostor) || !errors.Is(err, bbs.ErrNotLeader) {
		t.Errorf("got %v", err)
	}
	if asked.Load() > 0 {
		t.Error("the impostor was asked")
	}
}

func TestAClientsOwnCheckOfTheServerIsMadeToo(t *testing.T) {
	a := newAuthority(t)
	url, asked := posing(t, a, decline, "bbs", "diego-bbs")
	config, pinned := a.client(a, time.Hour, "me", "diego-consumer"), errors.New("not the one I know")
	config.VerifyConnection = func(tls.ConnectionState) error { return pinned }
	c, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{url}, TLS: config, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Cells(t.Context()); !errors.Is(err, pinned) || asked.Load() > 0 {
		t.Errorf("asked %d times, %v", asked.Load(), err)
	}
}

func TestAClientOfACellNamesIt(t *testing.T) {
	if _, err := httpapi.NewRemoteCell(httpapi.ClientOptions{Addresses: []string{"https://10.0.0.7:1801"}}); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
