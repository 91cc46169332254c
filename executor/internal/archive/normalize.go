package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
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
	weight, err := n.weighDirectory(f, info.Size())
	if err != nil {
		return err
	}
	if weight > smallZip {
		select {
		case largeZips <- struct{}{}:
			defer func() { <-largeZips }()
		case <-n.ctx.Done():
			return n.ctx.Err()
		}
	}
	in, err := zip.NewReader(contextReaderAt{n.ctx, f}, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}
	packed := uint64(info.Size())
	for _, e := range in.File {
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
	return nil
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

// maxDirectory bounds what the directory of a zip says of its entries besides
// their number: names, extra fields and comments.
const maxDirectory = 64 << 20

// The directory of a zip is in memory until the last of its files has been written,
// which tenants can make slow. So few large ones are, in the whole process; the others
// wait.
const smallZip = 8 << 20

var largeZips = make(chan struct{}, 2)

// weighDirectory refuses a zip whose directory would take too much memory, and returns
// about how much it takes. Package zip reads it as a whole, and believes neither its
// length nor the number of entries that it is said to have; so this counts everything in
// the file that looks like an entry.
func (n *normalizer) weighDirectory(f io.ReaderAt, size int64) (weight int64, err error) {
	const headerSize, overlap = 46, 3
	const entrySize = 400 // in memory, without its texts
	signature := []byte("PK\x01\x02")
	buffer := make([]byte, 256<<10)
	entries, texts := 0, int64(0)
	for at := int64(0); at < size; at += int64(len(buffer) - overlap) {
		if err := n.ctx.Err(); err != nil {
			return 0, err
		}
		read, err := f.ReadAt(buffer, at)
		if err != nil && err != io.EOF {
			return 0, err
		}
		for rest, base := buffer[:read], at; ; {
			i := bytes.Index(rest, signature)
			if i < 0 {
				break
			}
			base += int64(i)
			rest = rest[i+len(signature):]
			var header [headerSize]byte
			if _, err := f.ReadAt(header[:], base); err == nil {
				for _, field := range []int{28, 30, 32} { // lengths of name, extra field and comment
					texts += int64(binary.LittleEndian.Uint16(header[field:]))
				}
			}
			base += int64(len(signature))
			if entries++; entries > n.limits.MaxContentEntries {
				return 0, tooMany(n.limits.MaxContentEntries)
			}
			if texts > maxDirectory {
				return 0, tooLarge("its directory of a zip has more than %d bytes, which is fixed", maxDirectory)
			}
		}
	}
	if err := n.weighRecords(f, size); err != nil {
		return 0, err
	}
	return texts + int64(entries)*entrySize, nil
}

// weighRecords refuses a zip that says that it has more entries than there may be.
// Package zip makes room for as many as would fit into the file, before it reads the
// first: a GB for a file of 4 GiB. Only the end of a zip64 can name so many.
func (n *normalizer) weighRecords(f io.ReaderAt, size int64) error {
	const (
		tail          = 65<<10 + 20 // where package zip looks for the end, and the locator before it
		offsetAt      = 8           // in the locator
		recordsAt     = 32          // in the end of a zip64
		endSize       = recordsAt + 8
		locator, last = "PK\x06\x07", "PK\x06\x06"
	)
	buffer := make([]byte, min(tail, size))
	if _, err := f.ReadAt(buffer, size-int64(len(buffer))); err != nil && err != io.EOF {
		return err
	}
	for rest := buffer; ; {
		i := bytes.Index(rest, []byte(locator))
		if i < 0 || len(rest) < i+offsetAt+8 {
			return nil
		}
		at := binary.LittleEndian.Uint64(rest[i+offsetAt:])
		rest = rest[i+len(locator):]
		if at >= uint64(size) {
			continue
		}
		var end [endSize]byte
		if _, err := f.ReadAt(end[:], int64(at)); err != nil || string(end[:len(last)]) != last {
			continue // package zip does not take it either
		}
		if binary.LittleEndian.Uint64(end[recordsAt:]) > uint64(n.limits.MaxContentEntries) {
			return tooMany(n.limits.MaxContentEntries)
		}
	}
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
