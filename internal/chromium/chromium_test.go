package chromium_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/diegosdk/diego/internal/chromium"
)

func TestAPageReportsWhatGoesWrongOnIt(t *testing.T) {
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Security-Policy", "default-src 'self'; img-src *")
		fmt.Fprintf(w, `<!doctype html><link rel="icon" href="data:,"><img src="%s/x.png"><p id="x" onclick="bad()">text</p><style>p{}</style>`, other.URL)
	}))
	defer server.Close()
	p := chromium.Open(t)
	p.Visit(server.URL)
	p.Await("document.getElementById('x').innerText === 'text'")
	p.Eval("setTimeout(() => { throw new Error('thrown late') })", nil)
	p.Eval("setTimeout(() => { alert('hello') })", nil)
	p.Eval("console.error('complaint')", nil)
	p.Eval("fetch('missing')", nil)
	var sum int
	if p.Eval("Promise.resolve(1 + 1)", &sum); sum != 2 {
		t.Errorf("1 + 1 is %d", sum)
	}
	want := []string{"the page asks another server: " + other.URL, "/missing", "hello", "Content Security Policy", "thrown late", "complaint"}
	var got string
	for range 1000 {
		got += strings.Join(p.Faults(), "\n") + "\n"
		missing := false
		for _, part := range want {
			missing = missing || !strings.Contains(got, part)
		}
		if !missing {
			return
		}
		p.Await("new Promise(done => setTimeout(() => done(true), 10))")
	}
	t.Errorf("the page has the faults\n%s\nwant %q", got, want)
}
