package transfer

import (
	"compress/gzip"
	"context"
	"crypto/md5"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/internal/reach"
)

// pack writes a tar stream to file, by w, gzipped, and returns the size and MD5 of the
// result.
func (f *Fetcher) pack(ctx context.Context, file *os.File, w io.Writer, tar io.Reader) (size int64, sum []byte, err error) {
	digest := md5.New()
	zipped, err := gzip.NewWriterLevel(io.MultiWriter(w, digest), gzip.BestSpeed)
	if err != nil {
		return 0, nil, err
	}
	most := f.options.Content.MaxContentBytes
	if most <= 0 {
		most = archive.DefaultBytes
	}
	n, err := io.Copy(zipped, &rated{ctx, &f.packing, io.LimitReader(tar, most+1)})
	if err != nil {
		return 0, nil, err
	}
	if n > most {
		return 0, nil, fmt.Errorf("%w: more bytes to upload than MaxContentBytes, which is %d", archive.ErrTooLarge, most)
	}
	if err := zipped.Close(); err != nil {
		return 0, nil, err
	}
	size, err = file.Seek(0, io.SeekCurrent)
	return size, digest.Sum(nil), err
}

// post makes one attempt to upload; again reports whether another may succeed.
func (f *Fetcher) post(ctx context.Context, to string, body io.Reader, size int64, sum []byte) (again bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// The client waits for an answer once it has sent everything, not before.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to, pace(ctx, cancel, f.options.Pace, body))
	if err != nil {
		return false, err
	}
	request.ContentLength = size
	request.Header.Set("Content-Type", "application/gzip")
	request.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum))
	client := *f.options.Client
	client.CheckRedirect = noRedirect
	response, err := client.Do(request)
	if err != nil {
		if slow := context.Cause(ctx); errors.Is(slow, ErrSlow) {
			return false, fmt.Errorf("%s: %w", shown(to), slow)
		}
		return !errors.Is(err, reach.ErrRefused), withoutSecrets(to, err)
	}
	defer response.Body.Close()
	io.Copy(io.Discard, io.LimitReader(pace(ctx, cancel, f.options.Pace, response.Body), 64<<10)) // so that the connection can be used again
	if response.StatusCode < 200 || response.StatusCode > 299 {
		return response.StatusCode >= 500, fmt.Errorf("%w: %s answers %s", ErrStatus, shown(to), response.Status)
	}
	return false, nil
}

// noRedirect makes a redirect the answer. The request that follows one has no content,
// and its success would pass for that of the upload.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
