// Package transfer fetches archives over HTTP, keeps those that may come
// again, and sends archives away.
//
// A [Fetcher] has a directory of its own, which it empties at its start. What
// it fetches is checked against a checksum and a size before anybody sees it.
// What has a cache key stays on disk until room is needed; while somebody
// holds a [Lease] on it, it is never removed.
package transfer

import (
	"cmp"
	"context"
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"math"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/rate"
	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/internal/reach"
)

// What a failed transfer is, besides archive.ErrTooLarge and errors of the
// network.
var (
	// ErrChecksum: the content is not what was asked for.
	ErrChecksum = errors.New("checksum does not match")
	// ErrStatus: the server answered with another status than success.
	ErrStatus = errors.New("the server refused")
	// ErrURL: the URL is not one of HTTP or HTTPS.
	ErrURL = errors.New("not an HTTP or HTTPS URL")
)

// Options configure a Fetcher.
type Options struct {
	// Dir belongs to the Fetcher, is made if missing and emptied by New.
	Dir string
	// Client makes the requests. It is required.
	Client *http.Client
	// CacheBytes is how much is kept that nobody uses; 0 means
	// DefaultCacheBytes.
	CacheBytes int64
	// CacheEntries is how many archives and directories are kept at most, unless
	// more are in use: even an empty one takes an inode and memory. 0 means
	// DefaultCacheEntries.
	CacheEntries int
	// MaxBytes is the largest archive, as it is sent; 0 means DefaultMaxBytes.
	MaxBytes int64
	// Content bounds what is in an archive.
	Content archive.Limits
	// Downloads is how many there may be at once; 0 means DefaultDownloads.
	Downloads int
	// Pace is the time in which a transfer has to carry a MiB; 0 means
	// DefaultPace.
	Pace time.Duration
	// Turn is how long a download keeps its place; 0 means Turn.
	Turn time.Duration
}

// The defaults of Options.
const (
	DefaultCacheBytes      = 10_000_000_000
	DefaultCacheEntries    = 10_000
	DefaultMaxBytes        = 4 << 30
	DefaultResponseTimeout = time.Minute
	DefaultDownloads       = 5
)

// attempts is how often a request is made that fails on its way.
const attempts = 3

// A Fetcher fetches and sends archives. Its methods may be called at once from
// many goroutines.
type Fetcher struct {
	options   Options
	cache     cache
	progress  progress
	packing   rate.Rate    // of all uploads
	former    tenant.Trash // what earlier Fetchers have kept
	downloads places
}

// New returns a Fetcher with an empty cache. What an earlier one has kept in
// o.Dir is set aside until RemoveFormer is called.
func New(o Options) (*Fetcher, error) {
	if o.CacheBytes <= 0 {
		o.CacheBytes = DefaultCacheBytes
	}
	if o.CacheEntries <= 0 {
		o.CacheEntries = DefaultCacheEntries
	}
	if o.MaxBytes <= 0 {
		o.MaxBytes = DefaultMaxBytes
	}
	if o.Pace <= 0 {
		o.Pace = DefaultPace
	}
	if o.Downloads <= 0 {
		o.Downloads = DefaultDownloads
	}
	if o.Turn <= 0 {
		o.Turn = Turn
	}
	former := tenant.Trash{Dir: o.Dir + ".former"}
	if err := empty(o.Dir, former); err != nil {
		return nil, err
	}
	content := cmp.Or(max(o.Content.MaxContentBytes, 0), archive.DefaultBytes)
	return &Fetcher{
		packing: rate.Rate{Every: packEvery, Burst: packBurst},
		options: o, progress: progress{limit: 2 * max(o.MaxBytes, content)}, former: former, cache: cache{limit: o.CacheBytes, most: o.CacheEntries, keys: make(map[string]*slot), dropping: make(chan struct{}, 1), removeAll: tenant.RemoveAll},
		downloads: places{most: o.Downloads, domains: make(map[string]*domain)},
	}, nil
}

// empty makes dir an empty directory. What it holds goes to the trash, because
// it may be millions of files. If the disk has no room for another directory, it
// is removed at once.
func empty(dir string, trash tenant.Trash) error {
	const mode = 0o755
	if _, err := trash.Put(dir); (err == nil || errors.Is(err, fs.ErrNotExist)) && os.MkdirAll(dir, mode) == nil {
		return nil
	}
	for _, path := range []string{dir, trash.Dir} {
		if err := tenant.RemoveAll(context.Background(), path); err != nil {
			return err
		}
	}
	return os.MkdirAll(dir, mode)
}

// RemoveFormer removes what earlier Fetchers have kept. It ends with ctx; the next
// Fetcher's call goes on.
func (f *Fetcher) RemoveFormer(ctx context.Context) error {
	left, err := f.former.Sweep(ctx)
	for _, l := range left {
		err = errors.Join(err, l.Err)
	}
	return err
}

// A Request is an archive to be fetched.
type Request struct {
	URL string
	// CacheKey lets the archive be kept and found again, for the same URL but
	// for its query; empty means neither.
	CacheKey string
	// Algorithm is md5, sha1, sha256 or sha512, and Value the digest in
	// lower-case hexadecimal. Both empty: nothing is checked, and what is kept
	// is used only as long as the server says that it has not changed.
	Algorithm, Value string
	Format           archive.Format
	// Domain is who asks: domains share the places of downloads.
	Domain string
}

// packed is what an archive may take that stays as it came: MaxBytes bounds it.
const packed = math.MaxInt64

// Archive fetches an archive and returns a lease on its file, packed as it
// came.
func (f *Fetcher) Archive(ctx context.Context, r Request) (*Lease, error) {
	return f.get(ctx, r, "archive", packed, func(_ context.Context, file *os.File) (string, int64, error) {
		info, err := file.Stat()
		if err != nil {
			return "", 0, err
		}
		const block = 4 << 10
		return file.Name(), (info.Size() + block - 1) / block * block, nil
	})
}

// Directory fetches an archive and returns a lease on a directory with its
// content. Without a CacheKey the URL is the key. The content may take most bytes
// of disk; more is an archive.ErrTooLarge. 0 means what CacheBytes leaves beside
// what is in use.
func (f *Fetcher) Directory(ctx context.Context, r Request, most int64) (*Lease, error) {
	return f.Unpacked(ctx, r, "directory", most, func(ctx context.Context, file *os.File, dir string, limits archive.Limits) (disk int64, err error) {
		err = f.unpack(ctx, file, dir, r.Format, limits, &disk)
		return disk, err
	})
}

// Unpacked is Directory for a caller that unpacks the archive itself: unpack gets
// an empty directory and returns how much disk it has taken. Its context ends with ctx,
// and if the archive has to give way. Its results are kept by kind, so two kinds of one
// archive are two directories.
func (f *Fetcher) Unpacked(ctx context.Context, r Request, kind string, most int64, unpack func(ctx context.Context, file *os.File, dir string, l archive.Limits) (disk int64, err error)) (*Lease, error) {
	r.CacheKey = cmp.Or(r.CacheKey, r.URL)
	return f.get(ctx, r, kind, most, func(ctx context.Context, file *os.File) (string, int64, error) {
		defer os.Remove(file.Name())
		dir, err := os.MkdirTemp(f.options.Dir, "directory-")
		if err != nil {
			return "", 0, err
		}
		var disk int64
		if err = os.Chmod(dir, 0o755); err == nil {
			limits := f.options.Content
			if limits.MaxDisk = most; most == 0 {
				limits.MaxDisk = f.cache.room()
			}
			disk, err = unpack(ctx, file, dir, limits)
		}
		switch {
		case err == nil:
			return dir, disk, nil
		case ctx.Err() == nil:
			err = errors.Join(err, tenant.RemoveAll(ctx, dir))
		default: // a stop does not wait for it
			go tenant.RemoveAll(context.WithoutCancel(ctx), dir)
		}
		return "", 0, err
	})
}

func (f *Fetcher) unpack(ctx context.Context, file *os.File, dir string, format archive.Format, l archive.Limits, disk *int64) error {
	root, err := tenant.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	plain := normalized(ctx, file, format, l, disk)
	defer plain.Close()
	return archive.Extract(ctx, root, ".", plain, -1, -1)
}

// Tar is the content of an archive as a plain tar stream, checked on the way:
// reading ends with an error at the first entry that is unsafe or too large.
// The caller closes it, which also ends its use of file.
func (f *Fetcher) Tar(ctx context.Context, file *os.File, format archive.Format) io.ReadCloser {
	return normalized(ctx, file, format, f.options.Content, nil)
}

// normalized adds to disk until it is closed.
func normalized(ctx context.Context, file *os.File, format archive.Format, l archive.Limits, disk *int64) io.ReadCloser {
	r, w := io.Pipe()
	t := &tarStream{PipeReader: r, done: make(chan struct{})}
	t.stop = context.AfterFunc(ctx, func() { w.CloseWithError(ctx.Err()) })
	go func() {
		defer close(t.done)
		w.CloseWithError(archive.Normalize(ctx, w, file, format, l, disk))
	}()
	return t
}

type tarStream struct {
	*io.PipeReader
	stop func() bool
	done chan struct{}
}

func (t *tarStream) Close() error {
	t.stop()
	t.PipeReader.Close()
	<-t.done
	return nil
}

// download stores what a server sends in a new file. It is nil if the server
// says that known has not changed. The body of the answer is closed.
func (f *Fetcher) download(ctx context.Context, r Request, known *version, disk *part) (*os.File, *http.Response, error) {
	if err := checkURL(r.URL); err != nil {
		return nil, nil, err
	}
	var err error
	for range attempts {
		var file *os.File
		var answer *http.Response
		var again bool
		if file, answer, again, err = f.try(ctx, r, known, disk); err == nil || !again || ctx.Err() != nil {
			return file, answer, err
		}
	}
	return nil, nil, err
}

// try is one attempt; again says whether another may do better.
func (f *Fetcher) try(ctx context.Context, r Request, known *version, disk *part) (file *os.File, answer *http.Response, again bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL, nil)
	if err != nil {
		return nil, nil, false, err
	}
	if known != nil {
		etag, modified := known.validators(r.URL)
		if etag != "" {
			request.Header.Set("If-None-Match", etag)
		}
		if modified != "" {
			request.Header.Set("If-Modified-Since", modified)
		}
	}
	response, err := f.options.Client.Do(request)
	if err != nil {
		return nil, nil, !errors.Is(err, reach.ErrRefused), withoutSecrets(r.URL, err)
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusNotModified && known != nil {
		if known.query != queryOf(r.URL) && response.Request.URL.Host != hostOf(r.URL) {
			return f.try(ctx, r, nil, disk) // the other query leads to another host, which cannot confirm an archive of this one
		}
		return nil, response, false, nil
	}
	if response.StatusCode != http.StatusOK {
		return nil, nil, response.StatusCode >= 500, fmt.Errorf("%w: %s answers %s", ErrStatus, shown(r.URL), response.Status)
	}
	if response.ContentLength > f.options.MaxBytes {
		return nil, nil, false, f.tooLarge(r)
	}
	file, err = os.CreateTemp(f.options.Dir, "archive-")
	if err != nil {
		return nil, nil, false, err
	}
	defer func() {
		if err != nil {
			file.Close()
			os.Remove(file.Name())
			file = nil
		}
	}()
	sum, err := newSum(r.Algorithm)
	if err != nil {
		return file, nil, false, err
	}
	body := pace(ctx, cancel, f.options.Pace, response.Body)
	n, err := io.Copy(io.MultiWriter(disk.writer(file), sum), io.LimitReader(body, f.options.MaxBytes+1))
	if err != nil {
		if slow := context.Cause(ctx); errors.Is(slow, ErrSlow) {
			return file, nil, false, fmt.Errorf("%s: %w", shown(r.URL), slow)
		}
		return file, nil, !full(err) && !errors.Is(err, ErrBusy), withoutSecrets(r.URL, err)
	}
	if n > f.options.MaxBytes {
		return file, nil, false, f.tooLarge(r)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); r.Value != "" && got != r.Value {
		return file, nil, true, fmt.Errorf("%w: %s has the %s %s, want %s", ErrChecksum, shown(r.URL), r.Algorithm, got, r.Value)
	}
	return file, response, false, nil
}

func (f *Fetcher) tooLarge(r Request) error {
	return fmt.Errorf("%w: %s has more bytes than MaxDownloadBytes, which is %d", archive.ErrTooLarge, shown(r.URL), f.options.MaxBytes)
}

func newSum(algorithm string) (hash.Hash, error) {
	switch algorithm {
	case "md5":
		return md5.New(), nil
	case "sha1":
		return sha1.New(), nil
	case "sha256", "":
		return sha256.New(), nil
	case "sha512":
		return sha512.New(), nil
	}
	return nil, fmt.Errorf("unknown checksum algorithm %q", algorithm)
}

// Upload sends a tar stream, gzipped, with POST. It is stored first, so that
// its length is known, it can be sent again, and a slow server holds nothing
// of its source.
func (f *Fetcher) Upload(ctx context.Context, to string, tar io.Reader) (err error) {
	if err := checkURL(to); err != nil {
		return err
	}
	file, err := os.CreateTemp(f.options.Dir, "upload-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	ctx, disk := f.progress.begin(ctx)
	defer disk.end()
	defer func() { err = outcome(ctx, err) }()
	size, sum, err := f.pack(ctx, file, disk.writer(file), tar)
	if err != nil {
		return err
	}
	for range attempts {
		var again bool
		if again, err = f.post(ctx, to, io.NewSectionReader(file, 0, size), size, sum); err == nil || !again || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return fmt.Errorf("%w: %s", ErrURL, shown(text))
	}
	return nil
}

// shown is a URL without what may be secret in it.
func shown(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "a URL that cannot be parsed"
	}
	u.RawQuery, u.Fragment = "", ""
	return u.Redacted()
}

// withoutSecrets is an error of package http for a request to a URL, without queries.
func withoutSecrets(to string, err error) error {
	var e *url.Error
	switch {
	case !errors.As(err, &e):
		return err
	case shown(e.URL) == shown(to):
		return fmt.Errorf("%s %s: %w", strings.ToUpper(e.Op), shown(to), e.Err)
	}
	return fmt.Errorf("%s %s, redirected to %s: %w", strings.ToUpper(e.Op), shown(to), shown(e.URL), e.Err) // which may name no host
}
