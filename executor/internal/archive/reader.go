package archive

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"math"
)

// A Reader reads a tar that nobody trusts. It ends with its context, and bounds
// what there may be of headers, which package tar reads without end and without
// a word.
type Reader struct {
	tar *tar.Reader
	in  *meter
}

// NewReader returns a Reader of a tar. entries is the most that the tar may have;
// 0 means any number.
func NewReader(ctx context.Context, r io.Reader, entries int) *Reader {
	in := &meter{ctx: ctx, r: r, left: math.MaxInt64}
	if entries > 0 {
		in.left = MaxHeaderBytes + int64(entries)*meanHeaderBytes
	}
	return &Reader{tar.NewReader(in), in}
}

// Next is the next entry, io.EOF at the end, or an ErrTooLarge.
func (r *Reader) Next() (*tar.Header, error) {
	r.in.header, r.in.spent = true, 0
	h, err := r.tar.Next()
	r.in.header = false
	if r.in.err != nil { // package tar has words of its own
		return nil, r.in.err
	}
	r.in.left -= r.in.spent
	return h, err
}

// Read reads the content of the entry.
func (r *Reader) Read(p []byte) (int, error) { return r.tar.Read(p) }

// A meter counts what is read of headers.
type meter struct {
	ctx    context.Context
	r      io.Reader
	header bool  // whether what is read is one
	spent  int64 // of this entry
	left   int64 // of all entries, before this one
	err    error
}

func (m *meter) Read(p []byte) (int, error) {
	if m.err == nil {
		m.err = m.ctx.Err()
	}
	if m.err != nil {
		return 0, m.err
	}
	n, err := m.r.Read(p)
	if m.header {
		m.spent += int64(n)
		switch {
		case m.spent > MaxHeaderBytes:
			m.err = tooLarge("the headers of one entry have more than %d bytes, which is fixed", MaxHeaderBytes)
		case m.spent > m.left:
			m.err = tooLarge("its headers have more than %d bytes for each of MaxContentEntries", meanHeaderBytes)
		}
	}
	if m.err != nil {
		return 0, m.err
	}
	if err != nil && !errors.Is(err, io.EOF) {
		m.err = err
	}
	return n, err
}

// WithContext is a reader that ends with ctx.
func WithContext(ctx context.Context, r io.Reader) io.Reader { return &meter{ctx: ctx, r: r} }
