package system_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/apidocs"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// idle is a cell with nothing on it.
type idle struct{ rep.API }

func (idle) State(context.Context) (auction.CellState, error) {
	return auction.CellState{ID: "cell-1"}, nil
}
func (idle) Perform(context.Context, auction.Work) ([]auction.Rejection, error) { return nil, nil }
func (idle) StopLRP(context.Context, lrp.Key, lrp.InstanceKey) error            { return nil }
func (idle) CancelTask(context.Context, string, string) error                   { return nil }
func (idle) Evacuate(context.Context) error                                     { return nil }
func (idle) Evacuation(context.Context) (s rep.EvacuationStatus, _ error)       { return s, nil }
func (idle) Containers(context.Context) ([]executor.Container, error)           { return nil, nil }
func (idle) Logs(context.Context, rep.LogRequest) iter.Seq2[rep.LogChunk, error] {
	return func(func(rep.LogChunk, error) bool) {}
}

func (idle) LogDomain(context.Context, string) (string, error) { return "apps", nil }

// guarded serves a system to all who have a certificate of an authority.
func guarded(t *testing.T, a *authority) *httptest.Server {
	t.Helper()
	s := newSystem(t, 1, nil)
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{BBS: s.ControlPlane.BBS, Convergence: s, Locks: bbs.NewLocks(s.store), Auctioneer: s, Cell: idle{}, Ready: s.Ready})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	server.TLS = a.server("cell-1", "diego-bbs", "diego-auctioneer", "diego-cell")
	server.Config.ErrorLog = quiet
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func TestEveryCallIsForItsRolesAndForNobodyElse(t *testing.T) {
	a := newAuthority(t)
	server := guarded(t, a)
	for _, role := range httpapi.Roles {
		client := httpClient(a.client(a, time.Hour, "cell-1", "unit", "diego-"+string(role), "diego-domain:apps", "diego-lock:router"))
		defer client.CloseIdleConnections()
		for _, c := range httpapi.Calls() {
			t.Run(string(role)+"/"+c.Service+"."+c.Name, func(t *testing.T) {
				status, err := send(t, client, server.URL, c)
				if allowed := slices.Contains(c.Roles, role); allowed == errors.Is(err, httpapi.ErrForbidden) || (status == http.StatusForbidden) == allowed {
					t.Errorf("allowed is %t; got status %d, %v", allowed, status, err)
				}
				if errors.Is(err, executor.ErrInvalid) && slices.Contains(c.Roles, role) && !c.Session { // which also wants an upgrade
					t.Errorf("the example of the documentation is not valid: %v", err)
				}
			})
		}
	}
}

// send makes a call with the arguments of its example. The error is what the
// answer says.
func send(t *testing.T, client *http.Client, url string, c httpapi.CallInfo) (status int, err error) {
	t.Helper()
	body, err := apidocs.Request(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, c.Method, url+c.Path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusOK {
		return answer.StatusCode, nil // a feed goes on for ever
	}
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if kind := answer.Header.Get("Content-Type"); kind != "application/problem+json" {
		t.Errorf("got content type %q", kind)
	}
	return answer.StatusCode, httpapi.ProblemError(text)
}

func httpClient(config *tls.Config) *http.Client {
	return &http.Client{Transport: &http.Transport{TLSClientConfig: config}, Timeout: time.Minute}
}

func TestACellActsForItselfOnly(t *testing.T) {
	a := newAuthority(t)
	server := guarded(t, a)
	b, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, TLS: a.client(a, time.Hour, "cell-1", "diego-cell")})
	if err != nil {
		t.Fatal(err)
	}
	other := lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-2"}
	ctx := t.Context()
	keep := func(_ bool, err error) error { return err }
	for name, err := range map[string]error{
		"Announce":            b.Announce(ctx, bbs.CellPresence{CellID: "cell-2"}, "run", 0),
		"Leave":               b.Leave(ctx, "cell-2", "run"),
		"ClaimLRP":            b.ClaimLRP(ctx, "web", 0, lrp.Claim{Instance: other}),
		"StartLRP":            b.StartLRP(ctx, "web", 0, lrp.Start{Instance: other}),
		"CrashLRP":            b.CrashLRP(ctx, "web", 0, lrp.Crash{Instance: other}),
		"RemoveLRP":           b.RemoveLRP(ctx, "web", 0, lrp.Remove{Instance: other}),
		"EvacuateClaimedLRP":  keep(b.EvacuateClaimedLRP(ctx, "web", 0, lrp.EvacuateClaimed{Instance: other})),
		"EvacuateRunningLRP":  keep(b.EvacuateRunningLRP(ctx, "web", 0, lrp.EvacuateRunning{Instance: other})),
		"EvacuateStoppedLRP":  keep(b.EvacuateStoppedLRP(ctx, "web", 0, lrp.EvacuateStopped{Instance: other})),
		"EvacuateCrashedLRP":  keep(b.EvacuateCrashedLRP(ctx, "web", 0, lrp.EvacuateCrashed{Instance: other})),
		"RemoveEvacuatingLRP": b.RemoveEvacuatingLRP(ctx, "web", 0, lrp.RemoveEvacuating{Instance: other}),
		"StartTask":           keep(b.StartTask(ctx, "job", task.Start{CellID: "cell-2", InstanceGUID: "i"})),
		"CompleteTask":        b.CompleteTask(ctx, "job", task.Complete{CellID: "cell-2", InstanceGUID: "i"}),
		"RejectStartedTask":   b.RejectStartedTask(ctx, "job", task.Reject{CellID: "cell-2", InstanceGUID: "i", Reason: "r"}),
		"ReportSessions":      b.ReportSessions(ctx, "cell-2", nil),
	} {
		var forbidden *httpapi.ForbiddenError
		if !errors.As(err, &forbidden) || forbidden.Name != "cell-1" || forbidden.Call != name {
			t.Errorf("%s in the name of another cell: got %v", name, err)
		}
	}
	if n := len(slices.Collect(cellsOnlyCalls())); n != 15 {
		t.Errorf("%d calls are for cells only, and 15 are tried above", n)
	}
	if err := b.Announce(ctx, bbs.CellPresence{CellID: "cell-1"}, "run", 0); errors.Is(err, httpapi.ErrForbidden) {
		t.Errorf("in its own name: %v", err)
	}
}

// cellsOnlyCalls are the calls that only cells may make.
func cellsOnlyCalls() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, c := range httpapi.Calls() {
			if slices.Equal(c.Roles, []httpapi.Role{httpapi.CellRole}) && !yield(c.Name) {
				return
			}
		}
	}
}

// A task that waits is on the cell "".
func TestACertificateWithoutANameIsNoCells(t *testing.T) {
	a := newAuthority(t)
	server := guarded(t, a)
	ask := func(units ...string) *httpapi.RemoteBBS {
		b, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, TLS: a.client(a, time.Hour, "", units...)})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if err := ask("diego-consumer").DesireTask(t.Context(), desiredTask("job", "")); err != nil {
		t.Fatal(err)
	}
	if err := ask("diego-cell").RejectStartedTask(t.Context(), "job", task.Reject{Reason: "r"}); !errors.Is(err, httpapi.ErrForbidden) {
		t.Errorf("got %v, want ErrForbidden", err)
	}
}

func TestARequestIDIsItsCallersOwn(t *testing.T) {
	a := newAuthority(t)
	server := guarded(t, a)
	ctx := bbs.WithRequestID(t.Context(), "4711")
	for _, name := range []string{"ann", "bob"} {
		b, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, TLS: a.client(a, time.Hour, name, "diego-consumer")})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time it is repeated
			if err := b.Desire(ctx, desired("web-of-"+name, 1)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := b.Deployment(ctx, "web-of-"+name); err != nil {
			t.Errorf("%s was told that it is done, but: %v", name, err)
		}
	}
}

// What is asked of a cell is for that cell: it has nobody to send the caller to,
// with a certificate that others obey.
func TestACellSendsItsCallersNowhere(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the caller went to whom the cell had named")
	}))
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		body, err := httpapi.ProblemBody(&bbs.NotLeaderError{Role: "bbs", Leader: "cell-2", Address: other.URL})
		if err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = w.Write(body)
	}))
	defer server.Close()
	c, err := httpapi.NewRemoteCell(httpapi.ClientOptions{Addresses: []string{server.URL}, CellID: "cell-1", AllowPlain: true, Attempts: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Evacuate(t.Context()); !errors.Is(err, bbs.ErrNotLeader) {
		t.Errorf("got %v, want what the cell has said", err)
	}
}

func TestNobodyIsServedWithoutACertificateThatIsGood(t *testing.T) {
	a, stranger := newAuthority(t), newAuthority(t)
	server := guarded(t, a)
	for name, config := range map[string]*tls.Config{
		"none":                 {RootCAs: a.pool()},
		"of another issuer":    stranger.client(a, time.Hour, "consumer", "diego-consumer"),
		"expired":              a.client(a, -time.Minute, "consumer", "diego-consumer"),
		"server of a stranger": a.client(stranger, time.Hour, "consumer", "diego-consumer"),
	} {
		t.Run(name, func(t *testing.T) {
			b, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{
				Addresses: []string{server.URL}, TLS: config, Attempts: 1, Pause: time.Millisecond,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Cells(t.Context()); err == nil || !strings.Contains(err.Error(), "certificate") {
				t.Errorf("got %v, want an error about the certificate", err)
			}
		})
	}
	for name, units := range map[string][]string{"no role": nil, "other units": {"consumer", "diego-", "diego-king", "DIEGO-CONSUMER"}} {
		t.Run(name, func(t *testing.T) {
			b, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, TLS: a.client(a, time.Hour, "who", units...)})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := b.Cells(t.Context()); !errors.Is(err, httpapi.ErrForbidden) {
				t.Errorf("got %v, want ErrForbidden", err)
			}
		})
	}
}

func TestWithoutTLSNothingIsServedUnlessThatIsWanted(t *testing.T) {
	s := newSystem(t, 0, nil)
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{BBS: s.ControlPlane.BBS})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	b, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, AllowPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.Cells(t.Context()); !errors.Is(err, httpapi.ErrForbidden) {
		t.Errorf("got %v, want ErrForbidden", err)
	}
	if _, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}}); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("a client took an http address: %v", err)
	}
	// A server with TLS that forgets to ask for certificates serves nobody.
	a := newAuthority(t)
	open := httptest.NewUnstartedServer(handler)
	open.TLS = a.server("bbs", "diego-bbs")
	open.TLS.ClientAuth = tls.NoClientCert
	open.StartTLS()
	defer open.Close()
	b, err = httpapi.NewRemoteBBS(httpapi.ClientOptions{
		Addresses: []string{open.URL}, TLS: a.client(a, time.Hour, "me", "diego-consumer"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Desire(t.Context(), desired("web", 1)); !errors.Is(err, httpapi.ErrForbidden) {
		t.Errorf("got %v, want ErrForbidden", err)
	}
	if _, err := b.Deployment(t.Context(), "web"); errors.Is(err, storage.ErrNotFound) {
		t.Error("a record was looked for")
	}
}

func TestTheHistoryNamesTheCertificateOfTheCaller(t *testing.T) {
	a := newAuthority(t)
	server := guarded(t, a)
	b, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, TLS: a.client(a, time.Hour, "ann", "diego-consumer")})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Desire(t.Context(), desired("web", 1)); err != nil {
		t.Fatal(err)
	}
	if err := b.RestartDeployment(bbs.WithCaller(t.Context(), "somebody else"), "web"); err != nil {
		t.Fatal(err)
	}
	list, err := b.Revisions(t.Context(), "web")
	if err != nil || len(list) != 2 || list[0].By != "ann" || list[1].By != "ann" {
		t.Errorf("got %+v, %v; want two revisions of ann", list, err)
	}
}
