package archive

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
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
// at the first entry that is unsafe or goes beyond the limits; what it has
// written before is to be thrown away.
func Normalize(w io.Writer, f *os.File, format Format, l Limits) error {
	n := normalizer{out: tar.NewWriter(w), left: l.orDefault(), limits: l.orDefault()}
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
	switch format {
	case Tar:
		err = n.tar(bufio.NewReaderSize(f, 64<<10))
	case TGZ:
		var unzipped *gzip.Reader
		if unzipped, err = gzip.NewReader(bufio.NewReaderSize(f, 64<<10)); err == nil {
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
	out          *tar.Writer
	left, limits Limits
}

// count takes an entry from what the limits leave.
func (n *normalizer) count(size int64) error {
	if n.left.Entries--; n.left.Entries < 0 {
		return fmt.Errorf("%w: more than %d entries", ErrTooLarge, n.limits.Entries)
	}
	if size < 0 || size > n.left.Bytes {
		return n.tooLong()
	}
	n.left.Bytes -= size
	return nil
}

func (n *normalizer) tooLong() error {
	return fmt.Errorf("%w: more than %d bytes of content", ErrTooLarge, n.limits.Bytes)
}

func (n *normalizer) tar(r io.Reader) error {
	in := tar.NewReader(r)
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
		if err := n.count(h.Size); err != nil {
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

// maxLinkTarget is the longest target of a symbolic link, as on Linux.
const maxLinkTarget = 4095

func (n *normalizer) zip(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := n.weighDirectory(f, info.Size()); err != nil {
		return err
	}
	in, err := zip.NewReader(f, info.Size())
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return err
	}
	for _, e := range in.File {
		if err := n.zipEntry(e); err != nil {
			return err
		}
	}
	return nil
}

// maxDirectory bounds what the directory of a zip says of its entries besides
// their number: names, extra fields and comments.
const maxDirectory = 64 << 20

// weighDirectory refuses a zip whose directory would take too much memory.
// Package zip reads it as a whole, and believes neither its length nor the
// number of entries that it is said to have; so this counts everything in the
// file that looks like an entry.
func (n *normalizer) weighDirectory(f io.ReaderAt, size int64) error {
	const headerSize, overlap = 46, 3
	signature := []byte("PK\x01\x02")
	buffer := make([]byte, 256<<10)
	entries, texts := 0, int64(0)
	for at := int64(0); at < size; at += int64(len(buffer) - overlap) {
		read, err := f.ReadAt(buffer, at)
		if err != nil && err != io.EOF {
			return err
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
			if entries++; entries > n.limits.Entries {
				return fmt.Errorf("%w: more than %d entries", ErrTooLarge, n.limits.Entries)
			}
			if texts > maxDirectory {
				return fmt.Errorf("%w: a zip directory of more than %d bytes", ErrTooLarge, maxDirectory)
			}
		}
	}
	return nil
}

func (n *normalizer) zipEntry(e *zip.File) error {
	name, err := Name(e.Name)
	if err != nil {
		return err
	}
	if e.UncompressedSize64 > uint64(n.left.Bytes) {
		return n.tooLong()
	}
	size := int64(e.UncompressedSize64)
	if err := n.count(size); err != nil {
		return err
	}
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: int64(e.Mode().Perm()), ModTime: e.Modified}
	switch {
	case e.Mode().IsDir():
		h.Typeflag, h.Name = tar.TypeDir, name+"/"
		return n.out.WriteHeader(h)
	case e.Mode()&fs.ModeSymlink != 0:
		if size > maxLinkTarget {
			return unsafe("the link %q has a target of %d bytes", e.Name, size)
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
		target, err := io.ReadAll(io.LimitReader(content, maxLinkTarget))
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
	// The reader of package zip refuses content longer than the header says.
	_, err = io.CopyN(n.out, content, size)
	return err
}
