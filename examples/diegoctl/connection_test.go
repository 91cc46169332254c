package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/daemon"
	"github.com/diegosdk/diego/internal/devcerts"
	"github.com/diegosdk/diego/internal/fleetdir"
	"github.com/diegosdk/diego/internal/testenv"
)

// serveTLS serves the world over mutual TLS until the test ends.
func (w *world) serveTLS(t *testing.T, a *devcerts.Authority, hosts ...string) (address string) {
	t.Helper()
	return w.serveOver(t, a, []string{"diego-bbs"}, httpapi.HandlerOptions{BBS: w.plane.BBS, Convergence: w.plane, Auctioneer: w.plane}, hosts...)
}

// own serves the world as an allinone with that data directory does.
func (w *world) own(t *testing.T, data string) {
	t.Helper()
	issuer, err := fleetdir.Make(data, "127.0.0.1")
	w.must(err)
	files, err := issuer.Server("bbs", "diego-bbs")
	w.must(err)
	w.must(issuer.Publish(w.listen(t, daemon.TLS{TLSCert: files.Cert, TLSKey: files.Key, TLSCA: files.CA},
		httpapi.HandlerOptions{BBS: w.plane.BBS, Convergence: w.plane, Auctioneer: w.plane})))
}

func (w *world) serveOver(t *testing.T, a *devcerts.Authority, units []string, o httpapi.HandlerOptions, hosts ...string) (address string) {
	t.Helper()
	cert, key, err := a.Issue(devcerts.Request{File: "server-" + hosts[len(hosts)-1], Name: "server", Units: units, Hosts: hosts, For: time.Hour})
	w.must(err)
	return w.listen(t, daemon.TLS{TLSCert: cert, TLSKey: key, TLSCA: a.CA()}, o)
}

func (w *world) listen(t *testing.T, settings daemon.TLS, o httpapi.HandlerOptions) (address string) {
	t.Helper()
	log, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	w.must(err)
	t.Cleanup(func() { log.Close() })
	certificates, err := settings.Certificates(new(daemon.Logging).Logger(log))
	w.must(err)
	h, err := httpapi.NewHandler(o)
	w.must(err)
	l, err := daemon.Listen("listen", "127.0.0.1:0")
	w.must(err)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- daemon.Serve(ctx, l, h, certificates, new(daemon.Logging).Logger(log)) }()
	t.Cleanup(func() { cancel(); <-done })
	return "https://" + l.Addr().String()
}

// ask carries out a command line as main would, but for its environment.
func (w *world) ask(env map[string]string, line ...string) ran {
	var out, errs bytes.Buffer
	code := run(context.Background(), line, &process{
		stdin: strings.NewReader(""), stdout: &out, stderr: &errs, env: func(name string) string { return env[name] },
		now: w.clock.Now, after: time.After, dial: dialHTTP,
	})
	return ran{out.String(), errs.String(), code}
}

func TestConnectionsThatFailSayWhatToDo(t *testing.T) {
	w := newWorld(t)
	open := func() *devcerts.Authority {
		a, err := devcerts.Open(t.TempDir())
		w.must(err)
		return a
	}
	ours, others := open(), open()
	issue := func(a *devcerts.Authority, role string, good time.Duration) [2]string {
		cert, key, err := a.Issue(devcerts.Request{File: role, Name: "me", Units: []string{"diego-" + role}, For: good})
		w.must(err)
		return [2]string{cert, key}
	}
	operator, consumer := issue(ours, "operator", time.Hour), issue(ours, "consumer", time.Hour)
	expired := issue(ours, "cell", -time.Minute)
	stranger := issue(others, "operator", time.Hour)
	server := w.serveTLS(t, ours, "127.0.0.1", "localhost")
	elsewhere := w.serveTLS(t, ours, "another.example")
	alone := w.serveOver(t, ours, []string{"diego-bbs"}, httpapi.HandlerOptions{BBS: w.plane.BBS}, "127.0.0.1", "bbs")
	placer := w.serveOver(t, ours, []string{"diego-bbs"}, httpapi.HandlerOptions{Auctioneer: w.plane}, "127.0.0.1", "auctioneer")
	impostor := w.serveOver(t, ours, []string{"diego-cell"}, httpapi.HandlerOptions{BBS: w.plane.BBS}, "127.0.0.1", "impostor")
	// Nobody listens at an address that was just given up.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	w.must(err)
	nobody := "http://" + l.Addr().String()
	l.Close()
	nonsense := filepath.Join(t.TempDir(), "nonsense.pem")
	w.must(os.WriteFile(nonsense, []byte("nonsense"), 0o600))

	tests := []struct {
		name    string
		bbs, ca string
		pair    [2]string
		line    string
		code    int
		says    string
	}{
		{"an operator", server, ours.CA(), operator, "converge", exitOK, ""},
		{"two addresses of which one is gone", nobody + "," + server, ours.CA(), operator, "lrp list", exitOK, ""},
		{"a consumer that reads", server, ours.CA(), consumer, "lrp list", exitOK, ""},
		{"a consumer that converges", server, ours.CA(), consumer, "converge", exitForbidden, "another certificate is needed: --cert and --key"},
		{"without a certificate", server, ours.CA(), [2]string{}, "lrp list", exitForbidden, "another certificate is needed"},
		{"another authority's certificate", server, ours.CA(), stranger, "lrp list", exitUnreachable, "the server refuses the certificate of --cert (DIEGO_CERT)"},
		{"a certificate that has expired", server, ours.CA(), expired, "lrp list", exitUnreachable, "the server refuses the certificate of --cert (DIEGO_CERT)"},
		{"a server of another authority", server, others.CA(), operator, "lrp list", exitUnreachable, "is not signed by what --ca (DIEGO_CA) holds"},
		{"a server without a known authority", server, "", operator, "lrp list", exitUnreachable, "is not signed by what --ca (DIEGO_CA) holds"},
		{"a server of another name", elsewhere, ours.CA(), operator, "lrp list", exitUnreachable, "is for another name than the one in --bbs"},
		{"plain HTTP where TLS is wanted", strings.Replace(server, "https", "http", 1), "", [2]string{}, "lrp list", exitFailed, "the server speaks TLS; begin the address with https://"},
		{"a BBS that is not an auctioneer", alone, ours.CA(), operator, "plan -f ../specs/web.json", exitFailed, "plan needs --auctioneer (DIEGO_AUCTIONEER)"},
		{"a server that is not a BBS", placer, ours.CA(), operator, "cells", exitFailed, "--bbs (DIEGO_BBS) has to be the address of a BBS, and is " + placer},
		{"a server whose certificate is a cell's", impostor, ours.CA(), operator, "cells", exitUnreachable, "--bbs (DIEGO_BBS) has to be the address of a BBS, whose certificate has the unit diego-bbs"},
		{"nobody at two addresses", nobody + "," + nobody, "", [2]string{}, "lrp list", exitUnreachable, "another leads after a lease"},
		{"nobody", nobody, "", [2]string{}, "lrp list", exitUnreachable, "is the address right? --bbs (DIEGO_BBS) is " + nobody},
		{"no address", "https://", "", [2]string{}, "lrp list", exitInvalid, "addresses[0]"},
		{"a file that is none", server, filepath.Join(t.TempDir(), "none.pem"), [2]string{}, "lrp list", exitFailed, "the certificates of --ca cannot be read"},
		{"a file without certificates", server, nonsense, [2]string{}, "lrp list", exitFailed, "holds no certificate in PEM"},
		{"a key of no use", server, ours.CA(), [2]string{operator[0], nonsense}, "lrp list", exitFailed, "cannot be used"},
		{"a half", server, ours.CA(), [2]string{operator[0], ""}, "lrp list", exitUsage, "give both --cert and --key"},
		{"a value that is none", server, ours.CA(), operator, "lrp list", exitUsage, "DIEGO_TIMEOUT in the environment is \"soon\""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel() // they wait for servers that do not answer
			env := map[string]string{"DIEGO_BBS": tt.bbs, "DIEGO_CA": tt.ca, "DIEGO_CERT": tt.pair[0], "DIEGO_KEY": tt.pair[1]}
			if tt.name == "a value that is none" {
				env["DIEGO_TIMEOUT"] = "soon"
			}
			r := w.ask(env, strings.Fields(tt.line)...)
			if r.code != tt.code || !strings.Contains(r.stderr, tt.says) {
				t.Errorf("exit %d, want %d\n%s%s\nwant %q", r.code, tt.code, r.stdout, r.stderr, tt.says)
			}
		})
	}
}

func TestAnAllinoneIsFoundByItsDataDirectory(t *testing.T) {
	w := newWorld(t)
	state := t.TempDir() // that of this user
	t.Setenv("XDG_STATE_HOME", state)
	t.Setenv("HOME", state)
	usual, other := filepath.Join(state, "diego-allinone"), filepath.Join(t.TempDir(), "data")
	w.must(os.Mkdir(usual, 0o700))
	w.must(os.Mkdir(other, 0o700))
	if r := w.ask(nil, "cells"); r.code != exitUnreachable || !strings.Contains(r.stderr, "no allinone is found in "+usual) ||
		!strings.Contains(r.stderr, "start one with go run ./examples/allinone, or name a BBS with --bbs") {
		t.Errorf("before there is one: exit %d, %s", r.code, r.stderr)
	}
	w.own(t, usual)
	if r := w.ask(nil, "converge"); r.code != exitOK {
		t.Errorf("the usual one: exit %d, %s", r.code, r.stderr)
	}
	w.own(t, other)
	for _, r := range []ran{w.ask(nil, "plan", "-f", "../specs/web.json", "--data", other), w.ask(map[string]string{"DIEGO_DATA": other}, "lrp", "list")} {
		if r.code != exitOK && r.code != exitFailed || r.stderr != "" { // nothing of the plan finds room
			t.Errorf("another one: exit %d, %s", r.code, r.stderr)
		}
	}
	if r := w.ask(map[string]string{"DIEGO_CA": "ca.pem"}, "cells"); r.code != exitUsage || !strings.Contains(r.stderr, "--cert, --key and --ca are for the BBS that --bbs (DIEGO_BBS) names") {
		t.Errorf("certificates for nobody: exit %d, %s", r.code, r.stderr)
	}
	// It has ended, and left its address behind.
	w.must(os.WriteFile(filepath.Join(usual, "api", "url"), []byte("https://127.0.0.1:1\n"), 0o600))
	if r := w.ask(nil, "cells"); r.code != exitUnreachable || !strings.Contains(r.stderr, "does allinone still run? this is the address of the allinone in "+usual) {
		t.Errorf("one that has ended: exit %d, %s", r.code, r.stderr)
	}
}

func TestFollowingEventsGoesOnUntilInterrupted(t *testing.T) {
	for name, reach := range map[string]func(*world) *remote{"in process": (*world).local, "over HTTP": (*world).overHTTP} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			r := reach(w)
			if created := w.run(r, "", "lrp", "create", "-f", "../specs/greeter.json"); created.code != 0 {
				t.Fatal(created.stderr)
			}
			ctx, cancel := context.WithCancel(context.Background())
			defer cancel()
			out := new(testenv.Output)
			ended := make(chan int, 1)
			go func() {
				ended <- run(ctx, []string{"events", "--follow", "--after", "0", "--process", "greeter"}, &process{
					stdin: strings.NewReader(""), stdout: out, stderr: io.Discard, env: func(string) string { return "" },
					now: w.clock.Now, after: time.After, dial: func(connection) (*remote, error) { return r, nil },
				})
			}()
			out.Await(t, "greeter/1             waits for a cell")
			w.pass(3 * time.Second)
			out.Await(t, "greeter/1             runs on cell-2")
			cancel()
			if code := <-ended; code != exitOK {
				t.Errorf("interrupted it exits with %d", code)
			}
		})
	}
}
