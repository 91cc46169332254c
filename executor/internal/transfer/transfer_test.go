package transfer_test

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/transfer"
	"github.com/diegosdk/diego/internal/testenv"
)

func tarOf(name, content string) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))})
	io.WriteString(w, content)
	w.Close()
	return b.Bytes()
}

func sha256Of(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// A server counts what it is asked for.
type server struct {
	*httptest.Server
	gets, unchanged atomic.Int64
	mu              sync.Mutex
	version         string
}

func newServer(t *testing.T) *server {
	s := &server{version: "1"}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		w.Header().Set("ETag", s.version)
		if r.Header.Get("If-None-Match") == s.version {
			s.unchanged.Add(1)
			w.WriteHeader(http.StatusNotModified)
			return
		}
		s.gets.Add(1)
		w.Write(tarOf("f", s.version+r.URL.Path))
	}))
	t.Cleanup(s.Close)
	return s
}

func newFetcher(t *testing.T, edit ...func(*transfer.Options)) (*transfer.Fetcher, string) {
	t.Helper()
	o := transfer.Options{Dir: filepath.Join(t.TempDir(), "cache"), Client: http.DefaultClient}
	for _, e := range edit {
		e(&o)
	}
	f, err := transfer.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return f, o.Dir
}

func fetch(t *testing.T, f *transfer.Fetcher, r transfer.Request) *transfer.Lease {
	t.Helper()
	l, err := f.Directory(context.Background(), r, 1<<30)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func content(t *testing.T, l *transfer.Lease) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(l.Path, "f"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAFullDiskCostsWhatIsKeptForNobody(t *testing.T) {
	s := newServer(t)
	f, _ := newFetcher(t)
	unused := fetch(t, f, transfer.Request{URL: s.URL + "/unused", CacheKey: "unused"})
	unused.Release()
	used := fetch(t, f, transfer.Request{URL: s.URL + "/used", CacheKey: "used"})
	attempts := 0
	l, err := f.Unpacked(t.Context(), transfer.Request{URL: s.URL + "/next", CacheKey: "next"}, "kind", 1<<30,
		func(_ context.Context, _ *os.File, dir string, _ archive.Limits) (int64, error) {
			attempts++
			if _, err := os.Stat(unused.Path); err == nil {
				return 0, &fs.PathError{Op: "write", Path: dir, Err: syscall.ENOSPC}
			}
			return 1, nil
		})
	if err != nil || attempts != 2 {
		t.Fatalf("after %d attempts: %v", attempts, err)
	}
	if got := content(t, used); got != "1/used" {
		t.Errorf("what is in use has %q", got)
	}
	attempts = 0
	_, err = f.Unpacked(t.Context(), transfer.Request{URL: s.URL + "/large", CacheKey: "large"}, "kind", 1<<30,
		func(context.Context, *os.File, string, archive.Limits) (int64, error) {
			attempts++
			return 0, syscall.ENOSPC
		})
	if !errors.Is(err, syscall.ENOSPC) || attempts != 1 {
		t.Errorf("with nothing to remove, after %d attempts: %v", attempts, err)
	}
	l.Release()
	used.Release()
}

func TestWhatIsKeptIsAskedForOnlyWhetherItHasChanged(t *testing.T) {
	s := newServer(t)
	f, _ := newFetcher(t)
	r := transfer.Request{URL: s.URL + "/a", CacheKey: "a"}
	old := fetch(t, f, r)
	fetch(t, f, r).Release()
	if s.gets.Load() != 1 || s.unchanged.Load() != 1 {
		t.Errorf("%d downloads, %d times unchanged", s.gets.Load(), s.unchanged.Load())
	}
	s.mu.Lock()
	s.version = "2"
	s.mu.Unlock()
	next := fetch(t, f, r)
	if content(t, old) != "1/a" || content(t, next) != "2/a" {
		t.Errorf("the old version is %q, the new one %q", content(t, old), content(t, next))
	}
	old.Release()
	old.Release()
	if _, err := os.Stat(old.Path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old version is still there: %v", err)
	}
	next.Release()
}

func TestWhoKnowsAKeyIsNotGivenWhatAnotherServerSent(t *testing.T) {
	s := newServer(t)
	liar := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusNotModified) }))
	defer liar.Close()
	f, _ := newFetcher(t)
	fetch(t, f, transfer.Request{URL: s.URL + "/secret?signature=1", CacheKey: "key"}).Release()
	if _, err := f.Directory(context.Background(), transfer.Request{URL: liar.URL + "/secret", CacheKey: "key"}, 1<<30); !errors.Is(err, transfer.ErrStatus) {
		t.Errorf("the error is %v", err)
	}
	fetch(t, f, transfer.Request{URL: s.URL + "/secret?signature=2", CacheKey: "key"}).Release()
	if s.gets.Load() != 1 {
		t.Errorf("another signature made another download")
	}
}

func TestWhatHasTheRightChecksumIsNotAskedForAgain(t *testing.T) {
	s := newServer(t)
	f, _ := newFetcher(t)
	r := transfer.Request{URL: s.URL + "/a", CacheKey: "a", Algorithm: "sha256", Value: sha256Of(tarOf("f", "1/a"))}
	fetch(t, f, r).Release()
	s.Close()
	fetch(t, f, r).Release()
}

// Another tenant may know the URL and the key, have a server of the same origin answer as
// slowly as it can, and want another content.
func TestWhoKnowsAKeyHoldsUpNoOther(t *testing.T) {
	archive := tarOf("f", "content")
	right, wrong := sha256Of(archive), sha256Of(nil)
	for _, test := range []struct {
		name          string
		hostile, good transfer.Request
	}{
		{"a wrong checksum", transfer.Request{Algorithm: "sha256", Value: wrong, Domain: "hostile"}, transfer.Request{Algorithm: "sha256", Value: right, Domain: "good"}},
		{"a wrong checksum of the same domain", transfer.Request{Algorithm: "sha256", Value: wrong}, transfer.Request{Algorithm: "sha256", Value: right}},
		{"no checksum", transfer.Request{Domain: "hostile"}, transfer.Request{Algorithm: "sha256", Value: right, Domain: "good"}},
		{"the same checksum", transfer.Request{Algorithm: "sha256", Value: right, Domain: "hostile"}, transfer.Request{Algorithm: "sha256", Value: right, Domain: "good"}},
		{"nobody has one", transfer.Request{Domain: "hostile"}, transfer.Request{Domain: "good"}},
	} {
		for _, kept := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, kept %v", test.name, kept), func(t *testing.T) {
				asked, gone := make(chan struct{}, 10), make(chan struct{})
				s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.RawQuery == "slow" {
						asked <- struct{}{}
						<-gone
					}
					w.Write(archive)
				}))
				defer s.Close()
				f, _ := newFetcher(t)
				test.hostile.URL, test.hostile.CacheKey = s.URL+"/a?slow", "key"
				test.good.URL, test.good.CacheKey = s.URL+"/a", "key"
				if kept {
					fetch(t, f, test.good).Release()
				}
				paths := make(chan string, 1)
				go func() {
					path := ""
					if l, err := f.Directory(context.Background(), test.hostile, 1<<30); err == nil {
						path = l.Path
						l.Release()
					}
					paths <- path
				}()
				hostile := ""
				select { // it asks, or finds what it wants in the cache
				case <-asked:
				case hostile = <-paths:
					paths <- hostile
				}
				l := fetch(t, f, test.good)
				defer l.Release()
				close(gone)
				if hostile = <-paths; test.name == "the same checksum" && hostile != l.Path {
					t.Errorf("the same content is kept twice, at %q and %q", hostile, l.Path)
				}
			})
		}
	}
}

func TestOneOfManyDomainsDownloadsAndTheOthersAskWhetherItIsRight(t *testing.T) {
	s := newServer(t)
	f, _ := newFetcher(t, func(o *transfer.Options) { o.Downloads = 1 })
	const domains = 5
	var all sync.WaitGroup
	for i := range domains {
		all.Go(func() {
			l, err := f.Directory(t.Context(), transfer.Request{URL: s.URL + "/a", CacheKey: "a", Domain: fmt.Sprint(i)}, 1<<30)
			if err != nil {
				t.Error(err)
				return
			}
			l.Release()
		})
	}
	all.Wait()
	if gets, unchanged := s.gets.Load(), s.unchanged.Load(); gets != 1 || unchanged != domains-1 {
		t.Errorf("it is sent %d times, and confirmed %d times", gets, unchanged)
	}
}

func TestADownloadThatCannotBeTrustedIsRefusedAndLeavesNothing(t *testing.T) {
	s := newServer(t)
	refuser := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no", http.StatusForbidden)
	}))
	defer refuser.Close()
	f, dir := newFetcher(t, func(o *transfer.Options) { o.MaxBytes = 4096; o.Content = archive.Limits{MaxContentBytes: 1000} })
	large := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/known" {
			w.Header().Set("Content-Length", "5000")
		}
		w.Write(make([]byte, 5000))
	}))
	defer large.Close()
	bomb := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.Write(tarOf("f", strings.Repeat("x", 1500))) }))
	defer bomb.Close()
	for _, test := range []struct {
		name string
		r    transfer.Request
		want error
	}{
		{"another checksum", transfer.Request{URL: s.URL, Algorithm: "md5", Value: "00"}, transfer.ErrChecksum},
		{"a refusal", transfer.Request{URL: refuser.URL}, transfer.ErrStatus},
		{"too many bytes", transfer.Request{URL: large.URL}, archive.ErrTooLarge},
		{"too many bytes, as announced", transfer.Request{URL: large.URL + "/known"}, archive.ErrTooLarge},
		{"too much in it", transfer.Request{URL: bomb.URL}, archive.ErrTooLarge},
		{"a file", transfer.Request{URL: "file:///etc/passwd"}, transfer.ErrURL},
		{"no URL", transfer.Request{URL: "::"}, transfer.ErrURL},
	} {
		for _, key := range []string{"", "key"} {
			test.r.CacheKey = key
			if _, err := f.Directory(context.Background(), test.r, 1<<30); !errors.Is(err, test.want) {
				t.Errorf("%s: %v, want %v", test.name, err, test.want)
			}
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestErrorsShowNoSecretsOfAURL(t *testing.T) {
	f, _ := newFetcher(t)
	for _, url := range []string{"http://user:hush@127.0.0.1:1/a?token=hush", "ftp://user:hush@host/a?token=hush"} {
		_, err := f.Archive(context.Background(), transfer.Request{URL: url})
		if err == nil || strings.Contains(err.Error(), "hush") {
			t.Errorf("the error is %v", err)
		}
	}
}

func TestTheLeastRecentlyUsedIsEvictedAndNeverWhatIsInUse(t *testing.T) {
	s := newServer(t)
	f, dir := newFetcher(t, func(o *transfer.Options) { o.CacheBytes = 2 * 4096 }) // of one block each
	get := func(key string) *transfer.Lease {
		return fetch(t, f, transfer.Request{URL: s.URL + "/" + key, CacheKey: key})
	}
	a := get("a")
	get("b").Release()
	get("c").Release() // b goes, since a is in use
	a.Release()
	s.gets.Store(0)
	get("a").Release()
	get("c").Release()
	if n := s.gets.Load(); n != 0 {
		t.Errorf("%d downloads of what should be kept", n)
	}
	get("b").Release()
	if n := s.gets.Load(); n != 1 {
		t.Errorf("%d downloads of what was evicted", n)
	}
	if left, _ := os.ReadDir(dir); len(left) != 2 {
		t.Errorf("%d directories are kept, want 2", len(left))
	}
}

func TestManyUsersOfAFewKeysNeverLoseWhatTheyHold(t *testing.T) {
	s := newServer(t)
	f, dir := newFetcher(t, func(o *transfer.Options) { o.CacheBytes = 2 * 4096 })
	var users sync.WaitGroup
	for user := range 16 {
		users.Go(func() {
			for i := range 25 {
				key := fmt.Sprint((user + i) % 5)
				l, err := f.Directory(context.Background(), transfer.Request{URL: s.URL + "/" + key, CacheKey: key}, 1<<30)
				if err != nil {
					t.Error(err)
					return
				}
				if text, err := os.ReadFile(filepath.Join(l.Path, "f")); err != nil || string(text) != "1/"+key {
					t.Errorf("key %s holds %q, %v", key, text, err)
				}
				l.Release()
			}
		})
	}
	users.Wait()
	if left, _ := os.ReadDir(dir); len(left) > 2 {
		t.Errorf("%d directories are kept, want at most 2", len(left))
	}
}

// A tenant decides how many files that are.
func TestAFetcherDoesNotWaitUntilWhatAnEarlierOneHasKeptIsRemoved(t *testing.T) {
	s := newServer(t)
	first, dir := newFetcher(t)
	fetch(t, first, transfer.Request{URL: s.URL + "/a"})
	again := func(o *transfer.Options) { o.Dir = dir }
	newFetcher(t, again) // ends before it has removed anything
	last, _ := newFetcher(t, again)
	kept := func() (files int) {
		err := filepath.WalkDir(filepath.Dir(dir), func(_ string, e fs.DirEntry, err error) error {
			if err == nil && e.Type().IsRegular() {
				files++
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return files
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 || kept() != 1 {
		t.Errorf("the cache holds %v, and %d files are kept in all: %v", entries, kept(), err)
	}
	held := fetch(t, last, transfer.Request{URL: s.URL + "/a"})
	if err := last.RemoveFormer(t.Context()); err != nil || kept() != 1 || content(t, held) != "1/a" {
		t.Errorf("%d files are kept: %v", kept(), err)
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
		t.Errorf("beside the cache lies %v, %v", entries, err)
	}
}

func TestWhoWaitsForAnotherDownloadCanBeCancelled(t *testing.T) {
	asked, release := make(chan struct{}), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(asked)
		<-release
		w.Write(tarOf("f", "slow"))
	}))
	defer slow.Close()
	f, _ := newFetcher(t)
	r := transfer.Request{URL: slow.URL, CacheKey: "slow"}
	first := make(chan error)
	go func() {
		_, err := f.Directory(context.Background(), r, 1<<30)
		first <- err
	}()
	<-asked
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.Directory(ctx, r, 1<<30); !errors.Is(err, context.Canceled) {
		t.Errorf("who waits: %v", err)
	}
	close(release)
	if err := <-first; err != nil {
		t.Errorf("who downloads: %v", err)
	}
}

func TestATransferIsTriedAgainWhenTheServerFails(t *testing.T) {
	var asked atomic.Int64
	flaky := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if asked.Add(1)%3 != 0 {
			http.Error(w, "later", http.StatusServiceUnavailable)
			return
		}
		if r.Method == http.MethodGet {
			w.Write(tarOf("f", "x"))
		} else if int64(len(body)) != r.ContentLength || r.Header.Get("Content-MD5") == "" {
			http.Error(w, "incomplete", http.StatusBadRequest)
		}
	}))
	defer flaky.Close()
	f, dir := newFetcher(t)
	l, err := f.Archive(context.Background(), transfer.Request{URL: flaky.URL})
	if err != nil {
		t.Fatal(err)
	}
	l.Release()
	if err := f.Upload(context.Background(), flaky.URL, bytes.NewReader(tarOf("f", "x"))); err != nil {
		t.Error(err)
	}
	if err := f.Upload(context.Background(), "file:///tmp/x", bytes.NewReader(nil)); !errors.Is(err, transfer.ErrURL) {
		t.Errorf("an upload to a file: %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAnUploadIsBounded(t *testing.T) {
	f, _ := newFetcher(t, func(o *transfer.Options) { o.Content.MaxContentBytes = 1000 })
	if err := f.Upload(context.Background(), "http://127.0.0.1:1", bytes.NewReader(make([]byte, 1001))); !errors.Is(err, archive.ErrTooLarge) {
		t.Errorf("the error is %v", err)
	}
}

func TestAnUploadIsNotLostInARedirect(t *testing.T) {
	for _, status := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		var asked atomic.Int64
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/login", status)
			}
		}))
		f, _ := newFetcher(t)
		err := f.Upload(context.Background(), server.URL, bytes.NewReader(tarOf("f", "x")))
		server.Close()
		if !errors.Is(err, transfer.ErrStatus) || !strings.Contains(err.Error(), http.StatusText(status)) {
			t.Errorf("%d: the error is %v", status, err)
		}
		if n := asked.Load(); n != 1 {
			t.Errorf("%d: the server was asked %d times", status, n)
		}
	}
}

func TestAnArchiveOfAnotherQueryIsNotTakenForTheOneThatIsAskedFor(t *testing.T) {
	tags := map[string]string{}
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"of good"`) // as chosen by who wants to be taken for it
		w.Write(tarOf("f", "evil"))
	}))
	defer elsewhere.Close()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := r.URL.Query().Get("id")
		if id == "elsewhere" {
			http.Redirect(w, r, elsewhere.URL, http.StatusFound)
			return
		}
		if tag := tags[id]; tag != "" {
			w.Header().Set("ETag", tag)
		}
		w.Header().Set("Last-Modified", time.Unix(1e9, 0).UTC().Format(http.TimeFormat))
		if since := r.Header.Get("If-Modified-Since"); r.Header.Get("If-None-Match") == tags[id] && tags[id] != "" || since != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		w.Write(tarOf("f", id))
	}))
	defer s.Close()
	for _, test := range []struct{ name, first, tagOfFirst, tagOfGood string }{
		{"by the date alone", "evil", "", ""},
		{"by a tag that means little", "evil", `W/"1"`, `W/"1"`},
		{"by the tag of another server", "elsewhere", "", `"of good"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			tags["evil"], tags["good"] = test.tagOfFirst, test.tagOfGood
			f, _ := newFetcher(t)
			fetch(t, f, transfer.Request{URL: s.URL + "/f?id=" + test.first, CacheKey: "k"}).Release()
			l := fetch(t, f, transfer.Request{URL: s.URL + "/f?id=good", CacheKey: "k"})
			defer l.Release()
			if got := content(t, l); got != "good" {
				t.Errorf("it has the content of %s", got)
			}
		})
	}
}

// many serves an archive with so many files of a size, which never changes.
func many(t *testing.T, files, size int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"same"`)
		if r.Header.Get("If-None-Match") != "" {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		out := tar.NewWriter(w)
		for i := range files {
			out.WriteHeader(&tar.Header{Name: fmt.Sprint("f", i), Mode: 0o644, Size: int64(size)})
			out.Write(make([]byte, size))
		}
		out.Close()
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestADirectoryTakesNoMoreDiskThanThereIsForIt(t *testing.T) {
	url := many(t, 10, 5000) // two blocks each
	f, dir := newFetcher(t)
	const needed = 10 * 2 * 4096
	r := transfer.Request{URL: url, CacheKey: "k"}
	for _, attempt := range []string{"a download", "another one"} {
		if _, err := f.Directory(context.Background(), r, needed-1); !errors.Is(err, archive.ErrTooLarge) || !strings.Contains(err.Error(), fmt.Sprint(needed-1)) {
			t.Errorf("%s: %v", attempt, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 0 {
			t.Errorf("%s has left %v", attempt, left)
		}
	}
	l, err := f.Directory(context.Background(), r, needed)
	if err != nil || l.Size != needed {
		t.Fatalf("%+v, %v", l, err)
	}
	defer l.Release()
	if _, err := f.Directory(context.Background(), r, needed-1); !errors.Is(err, archive.ErrTooLarge) {
		t.Errorf("from the cache: %v", err)
	}
}

func TestWithoutALimitOfItsOwnADirectoryTakesWhatTheCacheHasLeft(t *testing.T) {
	url := many(t, 10, 4096)
	f, dir := newFetcher(t, func(o *transfer.Options) { o.CacheBytes = 25 * 4096 })
	get := func(key string) (*transfer.Lease, error) {
		return f.Directory(context.Background(), transfer.Request{URL: url, CacheKey: key}, 0)
	}
	a, errA := get("a")
	b, errB := get("b")
	if err := errors.Join(errA, errB); err != nil {
		t.Fatal(err)
	}
	if _, err := get("c"); !errors.Is(err, archive.ErrTooLarge) {
		t.Errorf("a third one beside two in use: %v", err)
	}
	again, err := get("a")
	if err != nil {
		t.Errorf("one that is in use already: %v", err)
	} else {
		again.Release()
	}
	a.Release()
	if c, err := get("c"); err != nil {
		t.Errorf("after one has gone: %v", err)
	} else {
		c.Release()
	}
	b.Release()
	if left, _ := os.ReadDir(dir); len(left) > 2 {
		t.Errorf("%d directories are kept", len(left))
	}
}

// A server that sends or takes next to nothing holds one of the few places that
// all containers share. Time is that of a synctest bubble, so the connections
// are pipes.
func TestATransferThatDoesNotGetOnEnds(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		gone := make(chan struct{})
		listener := make(pipes)
		server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch r.URL.Path {
			case "/answer":
				io.Copy(io.Discard, r.Body)
				time.Sleep(200 * time.Millisecond)
			case "/take":
				<-gone
				return
			}
			for r.Context().Err() == nil {
				w.Write([]byte("x"))
				w.(http.Flusher).Flush()
				select {
				case <-gone:
					return
				case <-time.After(5 * time.Millisecond):
				}
			}
		})}
		go server.Serve(listener)
		defer server.Close()
		defer close(gone)
		f, _ := newFetcher(t, func(o *transfer.Options) {
			o.Pace, o.Client = 50*time.Millisecond, &http.Client{Transport: &http.Transport{DialContext: listener.dial, DisableKeepAlives: true}}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		if _, err := f.Archive(ctx, transfer.Request{URL: "http://server/drip?hush"}); !errors.Is(err, transfer.ErrSlow) || strings.Contains(err.Error(), "hush") {
			t.Errorf("a server that hardly sends: %v", err)
		}
		random := make([]byte, 64<<10) // more than both sides buffer, and nothing to be packed
		rand.Read(random)
		if err := f.Upload(ctx, "http://server/take?hush", bytes.NewReader(random)); !errors.Is(err, transfer.ErrSlow) || strings.Contains(err.Error(), "hush") {
			t.Errorf("a server that takes nothing: %v", err)
		}
		if err := f.Upload(ctx, "http://server/answer", strings.NewReader("x")); err != nil {
			t.Errorf("a server that has taken all and answers slowly: %v", err)
		}
		if ctx.Err() != nil {
			t.Error("they last")
		}
	})
}

// pipes are connections to a server of the same test.
type pipes chan net.Conn

func (p pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p <- theirs:
		return ours, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (p pipes) Accept() (net.Conn, error) {
	if c, open := <-p; open {
		return c, nil
	}
	return nil, net.ErrClosed
}

func (p pipes) Close() error   { close(p); return nil }
func (p pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// A server decides how long a download lasts, so one that never ends keeps no place, and a
// tenant with any number of them leaves others a place at once.
func TestDownloadsThatLastHoldUpNoOther(t *testing.T) {
	for _, test := range []struct {
		name, hostile, good string // domains
		servers             int
		turn                time.Duration
	}{
		{"of one's own", "one", "one", transfer.LateEach, time.Millisecond},
		{"of another domain, before their turn is over", "one", "other", 20, time.Hour},
		{"of another domain, after it", "one", "other", 20, time.Millisecond},
	} {
		t.Run(test.name, func(t *testing.T) {
			gone := make(chan struct{})
			asked := make(chan struct{}, test.servers)
			endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked <- struct{}{}
				w.WriteHeader(http.StatusOK)
				w.(http.Flusher).Flush()
				<-gone
			}))
			defer endless.Close()
			defer close(gone)
			good := newServer(t)
			defer good.Close()
			f, _ := newFetcher(t, func(o *transfer.Options) { o.Downloads, o.Turn = 2, test.turn })
			ctx, cancel := context.WithCancel(t.Context())
			var hostile sync.WaitGroup
			for i := range test.servers {
				hostile.Go(func() {
					_, _ = f.Directory(ctx, transfer.Request{URL: endless.URL, CacheKey: fmt.Sprint(i), Domain: test.hostile}, 1<<20)
				})
			}
			<-asked
			get := func() {
				t.Helper()
				l, err := f.Archive(t.Context(), transfer.Request{URL: good.URL, Domain: test.good})
				if err != nil {
					t.Fatal(err)
				}
				l.Release()
			}
			get()
			cancel()
			hostile.Wait()
			for range 3 * test.servers { // each gives back what it has taken
				get()
			}
		})
	}
}

func TestSmallArchivesAreKeptInABoundedNumber(t *testing.T) {
	s := newServer(t)
	f, dir := newFetcher(t, func(o *transfer.Options) { o.CacheEntries = 3 })
	get := func(key string) *transfer.Lease {
		l, err := f.Archive(t.Context(), transfer.Request{URL: s.URL + "/a", CacheKey: key})
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		l := get(key)
		if l.Size == 0 || l.Size%4096 != 0 {
			t.Errorf("it takes %d bytes of disk, want whole blocks", l.Size)
		}
		l.Release()
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 3 {
		t.Errorf("%d archives are kept, %v; want 3", len(files), err)
	}
	s.gets.Store(0)
	get("e").Release()
	if n := s.gets.Load(); n != 0 {
		t.Error("the archive that was used last was downloaded again")
	}
}

// Tenants choose the keys, the URLs and the servers.
func TestWhatIsKeptTakesLittleMemoryWhateverItIsCalled(t *testing.T) {
	long := strings.Repeat("x", 200<<10)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", long)
		w.Header().Set("Last-Modified", long)
		w.Write(tarOf("f", "small"))
	}))
	defer s.Close()
	f, _ := newFetcher(t)
	get := func(name string) {
		l, err := f.Archive(t.Context(), transfer.Request{URL: s.URL + "/" + name + long, CacheKey: name + long})
		if err != nil {
			t.Fatal(err)
		}
		l.Release()
	}
	heap := func() int64 {
		http.DefaultClient.CloseIdleConnections()
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		return int64(now.HeapAlloc)
	}
	get("first")
	before := heap()
	const archives = 50
	for i := range archives {
		get(strconv.Itoa(i))
	}
	if each := (heap() - before) / archives; each > 32<<10 {
		t.Errorf("an archive that is kept takes %d bytes of memory", each)
	}
	runtime.KeepAlive(f)
}

// A tenant has any number of containers, and servers that send much, and then little.
// That keeps no other transfer from ending, however much it carries.
func TestOfTransfersThatTakeTooMuchDiskTheOneThatHoldsItLongestGivesWay(t *testing.T) {
	const most = 1 << 20
	over := make(chan struct{})
	defer close(over)
	f, dir := newFetcher(t, func(o *transfer.Options) { o.MaxBytes, o.Content.MaxContentBytes = most, most })
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begin := func(size int) <-chan error {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Write(make([]byte, size))
			http.NewResponseController(w).Flush()
			<-over
		}))
		t.Cleanup(s.Close)
		failed := make(chan error, 1)
		go func() {
			_, err := f.Archive(ctx, transfer.Request{URL: s.URL, CacheKey: "key"})
			failed <- err
		}()
		for stored := false; !stored; time.Sleep(time.Millisecond) {
			entries, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			stored = slices.ContainsFunc(entries, func(e os.DirEntry) bool {
				info, err := e.Info()
				return err == nil && info.Size() == int64(size)
			})
		}
		return failed
	}
	first, second := begin(most-100), begin(most-1)
	content := make([]byte, most-1000)
	_, _ = rand.Read(content)
	server := newServer(t)
	if err := f.Upload(t.Context(), server.URL+"/upload", bytes.NewReader(content)); errors.Is(err, transfer.ErrBusy) {
		t.Errorf("an upload that comes later: %v", err)
	}
	if err := <-first; !errors.Is(err, transfer.ErrBusy) {
		t.Errorf("the download that came first: %v", err)
	}
	select {
	case err := <-second:
		t.Errorf("the other download: %v", err)
	default:
	}
	cancel()
	<-second
	if files, err := os.ReadDir(dir); err != nil || len(files) != 0 {
		t.Errorf("%d files are left, %v", len(files), err)
	}
	if l, err := f.Archive(t.Context(), transfer.Request{URL: server.URL + "/a"}); err != nil {
		t.Errorf("a download afterwards: %v", err)
	} else {
		l.Release()
	}
}
