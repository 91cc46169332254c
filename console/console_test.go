package console_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/console"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage/memstore"
)

// A cell that says its state and notes that it is drained.
type cell struct {
	rep.API
	evacuated *int
}

func (c cell) State(context.Context) (auction.CellState, error) {
	return auction.CellState{ID: "cell-1", Zone: "z1"}, nil
}

func (c cell) Evacuate(context.Context) error {
	*c.evacuated++
	return nil
}

// serve is a console before an API with one cell, and how often that was drained.
func serve(t *testing.T, change func(*console.Options)) (http.Handler, *int) {
	t.Helper()
	api, err := bbs.New(bbs.Options{Store: memstore.New(nil), Effects: ignored{}})
	if err == nil {
		err = api.Announce(t.Context(), bbs.CellPresence{CellID: "cell-1", Address: "https://127.0.0.1:1", Zone: "z1"}, "o", time.Hour)
	}
	if err != nil {
		t.Fatal(err)
	}
	evacuated := new(int)
	o := console.Options{
		Calls: httpapi.HandlerOptions{BBS: api},
		Cell:  func(bbs.CellPresence) (rep.API, error) { return cell{evacuated: evacuated}, nil },
	}
	change(&o)
	calls, err := httpapi.NewHandler(o.Calls)
	if err != nil {
		t.Fatal(err)
	}
	h, err := console.New(calls, o)
	if err != nil {
		t.Fatal(err)
	}
	return h, evacuated
}

func plain(o *console.Options) { o.Calls.AllowPlain = true }

// ask makes a request with headers, which are names and values.
func ask(h http.Handler, method, url string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	for pair := range slices.Chunk(headers, 2) {
		r.Header.Set(pair[0], pair[1])
	}
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, r)
	return answer
}

// assetPaths are the files of the pages.
func assetPaths(t *testing.T) (paths []string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS("assets"), ".", func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, path)
		}
		return err
	})
	if err != nil || len(paths) == 0 {
		t.Fatalf("%d assets: %v", len(paths), err)
	}
	return paths
}

// An audit compares them with what npm has by these checksums.
func TestLibrariesOfOthersAreThoseThatTheListNames(t *testing.T) {
	list, err := os.ReadFile("vendor.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for line := range strings.Lines(string(list)) {
		if f := strings.Fields(line); len(f) == 5 && f[0] == "file" {
			want[f[1]] = f[4]
		}
	}
	got := map[string]string{}
	for _, path := range assetPaths(t) {
		if name, ok := strings.CutPrefix(path, "vendor/"); ok {
			body, err := os.ReadFile(filepath.Join("assets", path))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(body)
			got[name] = hex.EncodeToString(sum[:])
		}
	}
	if len(want) == 0 || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the files have the checksums\n%v\nand vendor.txt wants\n%v", got, want)
	}
	for name := range want {
		library, _, _ := strings.Cut(name, ".")
		if want[library+".LICENSE"] == "" {
			t.Errorf("%s has no licence beside it", name)
		}
	}
}

func TestThePagesWeighAtMost300KBCompressedAndAllowNothingFromElsewhere(t *testing.T) {
	h, _ := serve(t, plain)
	weight := 0
	for _, path := range assetPaths(t) {
		answer := ask(h, "GET", "http://127.0.0.1/console/"+path, "Accept-Encoding", "gzip")
		weight += answer.Body.Len()
		head := answer.Header()
		if answer.Code != http.StatusOK || head.Get("Content-Encoding") != "gzip" || head.Get("Content-Type") == "" || head.Get("X-Content-Type-Options") != "nosniff" || head.Get("Referrer-Policy") != "no-referrer" {
			t.Errorf("%s: %d, %v", path, answer.Code, head)
		}
		policy := head.Get("Content-Security-Policy")
		for _, part := range []string{"require-trusted-types-for 'script'", "trusted-types 'none'", "default-src 'none'", "script-src 'self'", "style-src 'self'", "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'"} {
			if !slices.Contains(strings.Split(policy, "; "), part) {
				t.Errorf("%s: the policy %q lacks %s", path, policy, part)
			}
		}
		if again := ask(h, "GET", "http://127.0.0.1/console/"+path, "If-None-Match", head.Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s: asked for news, the answer is %d with %d bytes", path, again.Code, again.Body.Len())
		}
	}
	t.Logf("%d bytes", weight)
	if weight > 300_000 {
		t.Errorf("the pages weigh %d bytes compressed, and may weigh 300,000", weight)
	}
}

func TestPagesOfOtherSitesGetNoAnswer(t *testing.T) {
	h, evacuated := serve(t, func(o *console.Options) { plain(o); o.Hosts = []string{"diego.example"} })
	const evacuate, whoami, cells = "/console/api/cell/evacuate?cell=cell-1", "/console/api/whoami", "/v1/bbs/cells"
	for _, c := range []struct {
		what, method, url string
		headers           []string
		status            int
	}{
		{"the page itself", "GET", "http://127.0.0.1" + whoami, []string{"Sec-Fetch-Site", "same-origin"}, 200},
		{"a program", "POST", "http://127.0.0.1" + cells, nil, 200},
		{"the address bar", "GET", "http://localhost:80/console/", []string{"Sec-Fetch-Site", "none"}, 200},
		{"a link of another site", "GET", "http://127.0.0.1/console/", []string{"Sec-Fetch-Site", "cross-site"}, 200},
		{"a link to its beginning", "GET", "http://[::1]/", []string{"Sec-Fetch-Site", "cross-site"}, 303},
		{"its name", "GET", "http://diego.example:1" + whoami, nil, 200},
		{"another site that reads", "GET", "http://127.0.0.1" + whoami, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another port of the host", "GET", "http://127.0.0.1" + whoami, []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"another site that calls the API", "POST", "http://127.0.0.1" + cells, []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"another site in an old browser", "POST", "http://127.0.0.1" + evacuate, []string{"Origin", "https://evil.example"}, 403},
		{"a sandbox", "POST", "http://127.0.0.1" + evacuate, []string{"Origin", "null"}, 403},
		{"a name that was pointed here", "GET", "http://evil.example" + whoami, nil, 403},
		{"such a name, and the API", "POST", "http://evil.example" + cells, []string{"Sec-Fetch-Site", "same-origin"}, 403},
		{"a name that begins as an address does", "GET", "http://127.0.0.1.evil.example" + whoami, nil, 403},
		{"a file that is not a page", "GET", "http://127.0.0.1/console/vendor.txt", nil, 404},
	} {
		if answer := ask(h, c.method, c.url, c.headers...); answer.Code != c.status {
			t.Errorf("%s: %d, want %d: %s", c.what, answer.Code, c.status, answer.Body)
		}
	}
	if *evacuated != 0 {
		t.Error("a cell was drained")
	}
}

func TestACallerMayDoWhatItsRolesSay(t *testing.T) {
	h, evacuated := serve(t, func(*console.Options) {})
	// as makes a call with a certificate of that role; "" stands for none.
	as := func(role, method, path string) *httptest.ResponseRecorder {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, asCaller("me", role, method, path))
		return answer
	}
	const page, whoami, cells, health, plan = "/console/", "/console/api/whoami", "/console/api/cells", "/console/api/health", "/console/api/plan"
	const state, evacuate, perform = "/console/api/cell/state?cell=cell-1", "/console/api/cell/evacuate?cell=cell-1", "/console/api/cell/perform?cell=cell-1"
	want := map[string]map[string]int{
		"":           {page: 200, whoami: 403, cells: 403, health: 403, plan: 403, state: 403, evacuate: 403},
		"cell":       {page: 200, whoami: 200, cells: 200, health: 200, plan: 403, evacuate: 403},
		"consumer":   {whoami: 200, cells: 200, health: 200, plan: 403, state: 403, evacuate: 403},
		"log-reader": {whoami: 200, cells: 403, health: 403, plan: 403, evacuate: 403},
		"operator":   {whoami: 200, cells: 200, health: 200, state: 200, evacuate: 200, perform: 404},
	}
	for role, paths := range want {
		for path, status := range paths {
			method := "POST"
			if slices.Contains([]string{page, whoami, cells, health}, path) {
				method = "GET"
			}
			if answer := as(role, method, path); answer.Code != status {
				t.Errorf("%q at %s: %d, want %d: %s", role, path, answer.Code, status, answer.Body)
			}
		}
	}
	if *evacuated != 1 {
		t.Errorf("the cell was drained %d times, and one caller might", *evacuated)
	}
	for role, may := range map[string]bool{"operator": true, "consumer": false} {
		var who struct {
			Name, Login string
			May         []string
		}
		if err := json.Unmarshal(as(role, "GET", whoami).Body.Bytes(), &who); err != nil {
			t.Fatal(err)
		}
		if who.Name != "me" || who.Login != "certificate" || slices.Contains(who.May, "cell/evacuate") != may || !slices.Contains(who.May, "bbs/update_deployment") {
			t.Errorf("%s is %+v", role, who)
		}
	}
}

// asCaller is a request with a certificate of a name and a role; "" stands for
// none.
func asCaller(name, role, method, path string) *http.Request {
	r := httptest.NewRequest(method, "https://127.0.0.1"+path, strings.NewReader("{}"))
	r.Header.Set("Content-Type", "application/json")
	r.TLS = &tls.ConnectionState{}
	if role != "" {
		cert := &x509.Certificate{Subject: pkix.Name{CommonName: name, OrganizationalUnit: []string{"diego-" + role}}}
		r.TLS.PeerCertificates, r.TLS.VerifiedChains = []*x509.Certificate{cert}, [][]*x509.Certificate{{cert}}
	}
	return r
}

// A loggingCell has logs that never end.
type loggingCell struct {
	rep.API
	reading *atomic.Int64
}

func (c loggingCell) Logs(ctx context.Context, _ rep.LogRequest) iter.Seq2[rep.LogChunk, error] {
	return func(func(rep.LogChunk, error) bool) {
		c.reading.Add(1)
		defer c.reading.Add(-1)
		<-ctx.Done()
	}
}

func TestOneCallerDoesNotTakeAllLogs(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		reading := new(atomic.Int64)
		h, _ := serve(t, func(o *console.Options) {
			o.Cell = func(bbs.CellPresence) (rep.API, error) { return loggingCell{reading: reading}, nil }
		})
		ctx, cancel := context.WithCancel(t.Context())
		// follow begins to read a log, and says how many are read then.
		follow := func(name string) (int64, *httptest.ResponseRecorder) {
			answer := httptest.NewRecorder()
			go h.ServeHTTP(answer, asCaller(name, "operator", "POST", "/console/api/cell/logs?cell=cell-1").WithContext(ctx))
			synctest.Wait()
			return reading.Load(), answer
		}
		for caller := range int64(4) {
			name := fmt.Sprint("operator-", caller)
			for n := range int64(50) {
				if got, answer := follow(name); got != 50*caller+n+1 {
					t.Fatalf("log %d of %s: %d are read: %s", n, name, got, answer.Body)
				}
			}
			if got, answer := follow(name); got != 50*(caller+1) || answer.Code == http.StatusOK {
				t.Errorf("one more log of %s: %d are read, the answer is %d: %s", name, got, answer.Code, answer.Body)
			}
		}
		if got, answer := follow("another"); got != 200 || answer.Code == http.StatusOK {
			t.Errorf("one more log: %d are read, the answer is %d: %s", got, answer.Code, answer.Body)
		}
		cancel()
		synctest.Wait()
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		if got, answer := follow("operator-0"); got != 1 {
			t.Errorf("once the others have ended, %d are read: %s", got, answer.Body)
		}
	})
}

func TestACellThatDoesNotAnswerIsShownWithTheReason(t *testing.T) {
	h, _ := serve(t, func(o *console.Options) {
		plain(o)
		o.Cell = func(bbs.CellPresence) (rep.API, error) { return nil, errors.New("no route to it") }
	})
	answer := ask(h, "GET", "http://127.0.0.1/console/api/cells")
	if !bytes.Contains(answer.Body.Bytes(), []byte(`"error":"no route to it"`)) || !bytes.HasSuffix(answer.Body.Bytes(), []byte("{\"end\":1}\n")) {
		t.Errorf("%d: %s", answer.Code, answer.Body)
	}
}

// The page keeps what an answer lacks.
func TestACellThatIsNoLongerCordonedOrDrainedIsSaidToBeNeither(t *testing.T) {
	h, _ := serve(t, plain)
	answer := ask(h, "GET", "http://127.0.0.1/console/api/cells")
	for _, want := range []string{`"evacuating":false`, `"cordoned":false`, `"unhealthy":false`, `"settling":false`} {
		if !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s lacks %s", answer.Body, want)
		}
	}
}

func TestADoorLetsInOneBrowserOnceForALimitedTime(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		h, _ := serve(t, plain)
		const address = "127.0.0.1:4711"
		door := console.NewDoor(h, address)
		link := door.Link()
		base := link[:strings.Index(link, "enter?")]
		whoami := base + "console/api/whoami"
		status := func(what string, want int, method, url string, headers ...string) *httptest.ResponseRecorder {
			t.Helper()
			answer := ask(door, method, url, headers...)
			if answer.Code != want {
				t.Errorf("%s: %d, want %d: %s", what, answer.Code, want, answer.Body)
			}
			return answer
		}
		status("a path without the secret", 404, "GET", "http://"+address+"/console/")
		status("another name", 421, "GET", strings.Replace(link, "127.0.0.1", "evil.example", 1))
		status("a token that was guessed", 403, "GET", base+"enter?token=x")
		status("no token", 403, "GET", base+"enter")
		status("a program that posts", 403, "POST", link)
		status("the page, which is not a secret", 200, "GET", base+"console/")
		status("a call before the login", 403, "GET", whoami, "Sec-Fetch-Site", "same-origin")
		status("an empty cookie before the login", 403, "GET", whoami, "Sec-Fetch-Site", "same-origin", "Cookie", "diego-console=")

		entered := status("the link", 303, "GET", link, "Sec-Fetch-Site", "none")
		cookie := entered.Result().Cookies()[0]
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || "http://"+address+cookie.Path != base || cookie.MaxAge != 12*60*60 {
			t.Errorf("the cookie is %v", cookie)
		}
		logged := []string{"Cookie", cookie.Name + "=" + cookie.Value}
		in := func(more ...string) []string { return append(slices.Clone(logged), more...) }
		status("the link again in this browser", 303, "GET", link, logged...)
		status("the link in another", 403, "GET", link)
		status("the page's call", 200, "GET", whoami, in("Sec-Fetch-Site", "same-origin")...)
		status("an old browser's", 200, "GET", whoami, in("Diego-Console", "1")...)
		status("one without the header", 403, "GET", whoami, logged...)
		status("another site's", 403, "GET", whoami, in("Sec-Fetch-Site", "cross-site", "Diego-Console", "1")...)
		status("another port's", 403, "POST", base+"v1/bbs/cells", in("Sec-Fetch-Site", "same-site")...)
		status("the API", 200, "POST", base+"v1/bbs/cells", in("Sec-Fetch-Site", "same-origin")...)
		status("a cookie that was guessed", 403, "GET", whoami, "Sec-Fetch-Site", "same-origin", "Cookie", cookie.Name+"="+strings.Repeat("A", len(cookie.Value)))
		time.Sleep(12*time.Hour - time.Second)
		status("late", 200, "GET", whoami, in("Sec-Fetch-Site", "same-origin")...)
		time.Sleep(time.Second)
		status("too late", 403, "GET", whoami, in("Sec-Fetch-Site", "same-origin")...)

		start := status("its beginning", 303, "GET", base)
		if got := start.Header().Get("Location"); got != "console/" {
			t.Errorf("the beginning leads to %q, which is not behind the door", got)
		}

		door = console.NewDoor(h, address)
		time.Sleep(5*time.Minute + time.Second)
		status("a link that is too old", 403, "GET", door.Link())
	})
}

func TestWhatABrowserFollowsEndsWithItsStay(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		feed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(100 * time.Hour):
			}
		})
		door := console.NewDoor(feed, "127.0.0.1:4711")
		base, _, _ := strings.Cut(door.Link(), "enter?")
		cookie := ask(door, "GET", door.Link()).Result().Cookies()[0]
		began := time.Now()
		time.Sleep(time.Hour)
		ask(door, "GET", base+"v1/bbs/events", "Sec-Fetch-Site", "same-origin", "Cookie", cookie.Name+"="+cookie.Value)
		if stay := time.Since(began); stay != 12*time.Hour {
			t.Errorf("the feed has lasted until %v after the login, want 12h", stay)
		}
	})
}

func TestAQuestionForAPlanIsOneObjectWithoutUnknownMembers(t *testing.T) {
	h, _ := serve(t, func(o *console.Options) { plain(o); o.Calls.Auctioneer = noAuctioneer{} })
	for body, want := range map[string]string{
		`{"process_guid": "web", "instances": 1, "memory": 5}`: "memory",
		`{"process_guid": "web", "instances": 1} {}`:           "follows",
		`{"process_guid": "web", "instances": 0}`:              "from 1 to 10,000",
		`{"instances": 1}`: "process_guid",
		`[]`:               "object",
	} {
		r := httptest.NewRequest("POST", "http://127.0.0.1/console/api/plan", strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), want) {
			t.Errorf("%s: %d, want %d and %q: %s", body, answer.Code, http.StatusBadRequest, want, answer.Body)
		}
	}
}

// noAuctioneer is never asked.
type noAuctioneer struct{ auction.API }
