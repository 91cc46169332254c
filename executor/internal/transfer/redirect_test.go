package transfer_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor/internal/transfer"
)

// A host that redirects to where a query says is asked whether an archive that it has sent
// has changed. The host to which it leads another tenant cannot answer for it.
func TestAHostToWhichAnotherQueryLeadsDoesNotConfirmAnArchive(t *testing.T) {
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Write(tarOf("f", "its own"))
	}))
	defer liar.Close()
	shared := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.FormValue("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		w.Header().Set("ETag", `"1"`)
		w.Write(tarOf("f", "a secret of "+r.FormValue("of")))
	}))
	defer shared.Close()
	f, _ := newFetcher(t)
	fetch(t, f, transfer.Request{URL: shared.URL + "/get?of=alice", CacheKey: "key"}).Release()
	lease, err := f.Directory(t.Context(), transfer.Request{URL: shared.URL + "/get?to=" + liar.URL, CacheKey: "key"}, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	if got := content(t, lease); got != "its own" {
		t.Errorf("a host that only says that nothing has changed gives away %q", got)
	}
}

func TestARedirectThatFailsIsNamedWithTheHostThatWasAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/again", http.StatusFound)
	}))
	defer server.Close()
	f, _ := newFetcher(t)
	_, err := f.Directory(t.Context(), transfer.Request{URL: server.URL + "/first?secret=1"}, 1<<20)
	if want := "GET " + server.URL + "/first, redirected to /again: stopped after 10 redirects"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q in it", err, want)
	}
}
