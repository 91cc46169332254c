package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// A Format is how an archive is packed.
type Format string

// The formats. Detect tells by the content.
const (
	Detect Format = ""
	Tar    Format = "tar"
	TGZ    Format = "tgz"
	Zip    Format = "zip"
)

// Normalize writes the content of an archive as a plain tar stream. It stops
// at the first entry that is unsafe or goes beyond the limits, and soon after
// the end of ctx; what it has written before is to be thrown away. It adds to
// disk, unless that is nil, what MaxDisk limits.
func Normalize(ctx context.Context, w io.Writer, f *os.File, format Format, l Limits, disk *int64) error {
	n := normalizer{budget: newBudget(l, disk), ctx: ctx, out: tar.NewWriter(w)}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if format == Detect {
		var err error
		if format, err = detect(f); err != nil {
			return err
		}
	}
	var err error
	packed := bufio.NewReaderSize(WithContext(ctx, f), 64<<10)
	switch format {
	case Tar:
		err = n.tar(packed)
	case TGZ:
		var unzipped *gzip.Reader
		if unzipped, err = gzip.NewReader(packed); err == nil {
			err = n.tar(unzipped)
		}
	case Zip:
		err = n.zip(f)
	default:
		err = fmt.Errorf("unknown archive format %q", format)
	}
	if err == io.EOF { // which readers of the result would take for its end
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return err
	}
	return n.out.Close()
}

// detect tells the format by the first bytes and rewinds the file.
func detect(f *os.File) (Format, error) {
	start := make([]byte, 262)
	n, err := io.ReadFull(f, start)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && err != io.EOF {
		return "", err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return "", err
	}
	start = start[:n]
	switch {
	case bytes.HasPrefix(start, []byte{0x1f, 0x8b}):
		return TGZ, nil
	case bytes.HasPrefix(start, []byte("PK\x03\x04")), bytes.HasPrefix(start, []byte("PK\x05\x06")):
		return Zip, nil
	case n == 262 && string(start[257:262]) == "ustar":
		return Tar, nil
	}
	return "", errors.New("neither a tar, nor a gzipped tar, nor a zip")
}

type normalizer struct {
	*budget
	ctx context.Context
	out *tar.Writer
}

// A budget is what there may still be in an archive.
type budget struct {
	left, limits Limits
	disk         *int64
	last         string // the name of the entry before
}

// newBudget adds to disk, unless that is nil, what MaxDisk limits.
func newBudget(l Limits, disk *int64) *budget {
	if disk == nil {
		disk = new(int64)
	}
	return &budget{left: l.orDefault(), limits: l.orDefault(), disk: disk}
}

// count takes an entry, and the directories that it may make, from what the
// limits leave.
func (n *budget) count(name string, size int64) error {
	entries := 1 + strangers(n.last, path.Dir(name))
	n.last = name
	if n.left.MaxContentEntries -= entries; n.left.MaxContentEntries < 0 {
		return tooMany(n.limits.MaxContentEntries)
	}
	if size < 0 || size > n.left.MaxContentBytes {
		return n.tooLong()
	}
	n.left.MaxContentBytes -= size
	const block = 4 << 10
	*n.disk += max((size+block-1)/block, 1)*block + int64(entries-1)*block
	if n.limits.MaxDisk > 0 && *n.disk > n.limits.MaxDisk {
		return tooLarge("it takes more disk than the %d bytes that there are for it", n.limits.MaxDisk)
	}
	return nil
}

// strangers is how many directories of a path are not those of another one.
func strangers(known, dir string) int {
	if dir == "." {
		return 0
	}
	a, b := strings.Split(known, "/"), strings.Split(dir, "/")
	same := 0
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	return len(b) - same
}

func (n *budget) tooLong() error {
	return tooLarge("it holds more bytes than MaxContentBytes, which is %d", n.limits.MaxContentBytes)
}

func (n *normalizer) tar(r io.Reader) error {
	in := NewReader(n.ctx, r, n.limits.MaxContentEntries)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := Name(h.Name)
		if err != nil {
			return err
		}
		if err := n.count(name, h.Size); err != nil {
			return err
		}
		next := &tar.Header{Typeflag: h.Typeflag, Name: name, Mode: h.Mode & 0o777, ModTime: h.ModTime}
		switch h.Typeflag {
		case tar.TypeDir:
			next.Name += "/"
		case tar.TypeReg:
			next.Size = h.Size
		case tar.TypeSymlink:
			next.Linkname = h.Linkname
			err = Link(name, h.Linkname)
		case tar.TypeLink:
			next.Linkname, err = Name(h.Linkname)
		case tar.TypeXGlobalHeader:
			continue
		default:
			err = unsafe("the entry %q is neither file, directory nor link", h.Name)
		}
		if err != nil {
			return err
		}
		if err := n.out.WriteHeader(next); err != nil {
			return err
		}
		if next.Size > 0 {
			if _, err := io.CopyN(n.out, in, next.Size); err != nil {
				return err
			}
		}
	}
}

func (n *normalizer) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	directory, err := openDirectory(contextReaderAt{n.ctx, f}, info.Size())
	if err != nil {
		return err
	}
	packed := uint64(info.Size())
	for {
		part, err := directory.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		for _, e := range part {
			// Entries that share their content would be unpacked once for each of them, and
			// what unpacks to hardly anything is not counted by the limits.
			if e.CompressedSize64 > packed {
				return unsafe("the entries of the zip overlap, or have more bytes than the zip, at %.64q", e.Name)
			}
			packed -= e.CompressedSize64
			if err := n.zipEntry(e); err != nil {
				return err
			}
		}
	}
}

// A contextReaderAt ends with its context.
type contextReaderAt struct {
	ctx context.Context
	r   io.ReaderAt
}

func (c contextReaderAt) ReadAt(p []byte, at int64) (int, error) {
	if err := c.ctx.Err(); err != nil {
		return 0, err
	}
	return c.r.ReadAt(p, at)
}

func (n *normalizer) zipEntry(e *zip.File) error {
	name, err := Name(e.Name)
	if err != nil {
		return err
	}
	if e.UncompressedSize64 > uint64(n.left.MaxContentBytes) {
		return n.tooLong()
	}
	size := int64(e.UncompressedSize64)
	if err := n.count(name, size); err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(e.Mode().Perm()), ModTime: e.Modified}
	switch {
	case e.Mode().IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return n.out.WriteHeader(h)
	case e.Mode()&fs.ModeSymlink != 0:
		if size > MaxPathBytes {
			return tooLarge("the link %.64q has a target of more than %d bytes, which is fixed", e.Name, MaxPathBytes)
		}
	case !e.Mode().IsRegular():
		return unsafe("the entry %q is neither file, directory nor link", e.Name)
	}
	content, err := e.Open()
	if err != nil {
		return err
	}
	defer content.Close()
	if e.Mode()&fs.ModeSymlink != 0 {
		target, err := io.ReadAll(io.LimitReader(content, MaxPathBytes+1)) // to its end, where it is checked
		if err != nil {
			return err
		}
		h.Typeflag, h.Linkname = tar.TypeSymlink, string(target)
		if err := Link(name, h.Linkname); err != nil {
			return err
		}
		return n.out.WriteHeader(h)
	}
	h.Size = size
	if err := n.out.WriteHeader(h); err != nil {
		return err
	}
	if _, err := io.CopyN(n.out, content, size); err != nil {
		return err
	}
	// Only at the end the reader of package zip refuses content that is longer than the
	// header says, or has another checksum.
	_, err = io.Copy(io.Discard, content)
	return err
}
