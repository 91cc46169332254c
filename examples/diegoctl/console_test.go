package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/devcerts"
)

// console starts diegoctl console with further flags and returns what it prints
// as JSON. The command ends with the test, and has to succeed.
func (w *world) console(t *testing.T, dial func(connection) (*remote, error), line ...string) (link string) {
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	var errs bytes.Buffer
	code := make(chan int, 1)
	go func() {
		code <- run(ctx, append([]string{"console", "-o", "json"}, line...), &process{
			stdin: strings.NewReader(""), stdout: in, stderr: &errs, env: func(string) string { return "" },
			now: w.clock.Now, after: time.After, dial: dial,
		})
		in.Close()
	}()
	t.Cleanup(func() {
		cancel()
		if got := <-code; got != exitOK {
			t.Errorf("the command ends with %d: %s", got, errs.String())
		}
	})
	text, err := bufio.NewReader(out).ReadBytes('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	go io.Copy(io.Discard, out)
	var doc struct{ Link string }
	w.must(json.Unmarshal(text, &doc))
	return doc.Link
}

// The browser does what the certificate may do, whose key it never sees.
func TestTheConsoleMayDoWhatItsCertificateMayDo(t *testing.T) {
	w := newWorld(t)
	authority, err := devcerts.Open(t.TempDir())
	w.must(err)
	server := w.serveTLS(t, authority, "127.0.0.1")
	for _, c := range []struct {
		role     httpapi.Role
		converge int
	}{{httpapi.OperatorRole, http.StatusOK}, {httpapi.ConsumerRole, http.StatusForbidden}} {
		t.Run(string(c.role), func(t *testing.T) {
			cert, key, err := authority.Issue(devcerts.Request{File: string(c.role), Name: "me", Units: []string{"diego-" + string(c.role)}, For: time.Hour})
			w.must(err)
			link := w.console(t, dialHTTP, "--bbs", server, "--cert", cert, "--key", key, "--ca", authority.CA())
			jar, err := cookiejar.New(nil)
			w.must(err)
			browser := &http.Client{Jar: jar}
			page, err := browser.Get(link)
			w.must(err)
			page.Body.Close()
			base := strings.TrimSuffix(page.Request.URL.String(), "console/")
			if page.StatusCode != http.StatusOK || base == page.Request.URL.String() {
				t.Fatalf("the link leads to %v: %s", page.Request.URL, page.Status)
			}
			do := func(method, path string, in, out any) int {
				body, err := json.Marshal(in)
				w.must(err)
				r, err := http.NewRequest(method, base+path, bytes.NewReader(body))
				w.must(err)
				r.Header.Set("Content-Type", "application/json")
				r.Header.Set("Sec-Fetch-Site", "same-origin")
				answer, err := browser.Do(r)
				w.must(err)
				defer answer.Body.Close()
				if out != nil {
					w.must(json.NewDecoder(answer.Body).Decode(out))
				}
				return answer.StatusCode
			}
			var who struct {
				Name, Login string
				May         []string
			}
			if status := do("GET", "console/api/whoami", nil, &who); status != http.StatusOK || who.Name != "me" || who.Login != "link" {
				t.Errorf("%d: %+v", status, who)
			}
			if status := do("POST", "v1/bbs/converge", struct{}{}, nil); status != c.converge {
				t.Errorf("converge is answered with %d, want %d", status, c.converge)
			}
			var how struct {
				Ready  bool
				Newest *int64 `json:"events_total"`
			}
			if status := do("GET", "console/api/health", nil, &how); status != http.StatusOK || how.Newest == nil || !how.Ready {
				t.Errorf("%d: %+v", status, how)
			}
		})
	}
}

func TestTheConsoleIsForThisMachineAlone(t *testing.T) {
	w := newWorld(t)
	for _, address := range []string{"0.0.0.0:0", "192.0.2.1:0", "host.example:0", "127.0.0.1"} {
		if got := w.run(w.local(), "", "console", "--listen", address); got.code != exitUsage || !strings.Contains(got.stderr, "--listen wants an address such as 127.0.0.1:8080") {
			t.Errorf("%s: %+v", address, got)
		}
	}
}

func TestTheConsoleOfABBSThatDoesNotAnswerSaysSo(t *testing.T) {
	w := newWorld(t)
	if got := w.ask(nil, "console", "--bbs", "http://127.0.0.1:1", "--timeout", "1s"); got.code != exitUnreachable {
		t.Errorf("%+v", got)
	}
}
