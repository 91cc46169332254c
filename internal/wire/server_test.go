package wire

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestWhatNobodySendsToTheEndIsNotWaitedFor(t *testing.T) {
	s := newServer()
	s.Timeout, s.WriteTimeout = 50*time.Millisecond, 50*time.Millisecond
	mux := http.NewServeMux()
	Register(s, mux, &echo{answer: repeatAfter}, table)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { s.WriteJSON(w, http.StatusOK, None{}) })
	mux.HandleFunc("/", s.NotFound)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Last") != "" { // as a daemon does when the client's certificate has expired
			w.Header().Set("Connection", "close")
		}
		mux.ServeHTTP(w, r)
	}))
	defer server.Close()
	for _, head := range []string{
		"GET /healthz HTTP/1.1", "POST /nowhere HTTP/1.1", "GET /v1/always HTTP/1.1", "POST /v1/always HTTP/1.1",
		"GET /healthz HTTP/1.1\r\nLast: yes", "POST /nowhere HTTP/1.1\r\nLast: yes", "GET /v1/always HTTP/1.1\r\nLast: yes", "POST /v1/always HTTP/1.1\r\nLast: yes",
	} {
		t.Run(head, func(t *testing.T) {
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if _, err := io.WriteString(conn, head+"\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"); err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(5 * time.Second))
			if _, err := io.Copy(io.Discard, conn); err != nil {
				t.Errorf("the connection is still open: %v", err)
			}
		})
	}
}

// Clients that look for the leader hear all the time that a process does not
// lead.
func TestAStandbySaysNothingOfCallsForTheLeader(t *testing.T) {
	var log bytes.Buffer
	s := newServer()
	s.Logger = slog.New(slog.NewTextHandler(&log, nil))
	e := &echo{answer: func(_ context.Context, in words) (words, error) {
		if in.Text == "" {
			return words{}, errOther
		}
		return words{}, errors.New("it is broken")
	}}
	server := serve(t, s, e)
	c := newTestClient(server.URL)
	c.o.Rounds = 1
	_, _ = always.Do(t.Context(), c, words{})
	if _, _ = always.Do(t.Context(), c, words{Text: "x"}); strings.Count(log.String(), "\n") != 1 || !strings.Contains(log.String(), "it is broken") {
		t.Errorf("got %s; want one line, about what is broken", &log)
	}
}
