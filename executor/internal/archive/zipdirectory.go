package archive

import (
	"archive/zip"
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"slices"
)

// A zipDirectory reads the directory of a zip in parts of few entries. Package zip would
// read it as a whole and keep it until the last file has been written, for as long as a
// tenant's file system takes; a directory may have half a million entries. It would also
// make room for as many entries as a zip says that it has.
//
// Package zip still reads each part, as a zip of its own: the part comes after the content,
// with an end that says where it begins.
type zipDirectory struct {
	zip     io.ReaderAt
	base    int64         // where offsets in the zip begin
	size    int64         // of the zip from there
	rest    *bufio.Reader // of the directory
	records uint64        // that the zip says that it has
	read    uint64
	part    []byte
}

// A part has as many entries or texts. Together they take about a MiB of memory.
const partEntries, partBytes = 1000, 256 << 10

// Sizes of what is in a zip, without names, comments and the like.
const (
	zipEntrySize   = 46
	zipEndSize     = 22
	zip64EndSize   = 56
	zipLocatorSize = 20
)

// The beginnings of these.
const (
	zipEntry   = "PK\x01\x02"
	zipEnd     = "PK\x05\x06"
	zip64End   = "PK\x06\x06"
	zipLocator = "PK\x06\x07"
)

// openDirectory finds the directory of a zip, where package zip finds it too.
func openDirectory(r io.ReaderAt, size int64) (*zipDirectory, error) {
	le := binary.LittleEndian
	tail := make([]byte, min(size, 65<<10))
	if _, err := r.ReadAt(tail, size-int64(len(tail))); err != nil && err != io.EOF {
		return nil, err
	}
	at := bytes.LastIndex(tail[:max(len(tail)-zipEndSize+len(zipEnd), 0)], []byte(zipEnd))
	if at < 0 {
		return nil, zip.ErrFormat
	}
	end, endAt := tail[at:], size-int64(len(tail)-at)
	if zipEndSize+int(le.Uint16(end[20:])) > len(end) {
		return nil, zip.ErrFormat // its comment is cut off
	}
	records, length, offset := uint64(le.Uint16(end[10:])), uint64(le.Uint32(end[12:])), uint64(le.Uint32(end[16:]))
	if locatorAt := endAt - zipLocatorSize; locatorAt >= 0 && (records == math.MaxUint16 || length == math.MaxUint16 || offset == math.MaxUint32) {
		var locator [zipLocatorSize]byte
		if _, err := r.ReadAt(locator[:], locatorAt); err != nil {
			return nil, err
		}
		found := int64(le.Uint64(locator[8:]))
		if bytes.HasPrefix(locator[:], []byte(zipLocator)) && le.Uint32(locator[4:]) == 0 && le.Uint32(locator[16:]) == 1 && found >= 0 {
			var end [zip64EndSize]byte
			if _, err := r.ReadAt(end[:], found); err != nil {
				return nil, err
			}
			if !bytes.HasPrefix(end[:], []byte(zip64End)) {
				return nil, zip.ErrFormat
			}
			endAt = found
			records, length, offset = le.Uint64(end[32:]), le.Uint64(end[40:]), le.Uint64(end[48:])
		}
	}
	const most = 1 << 60 // more than any file has
	if length > most || offset > most {
		return nil, zip.ErrFormat
	}
	directory := endAt - int64(length)
	if directory < 0 || directory >= size {
		return nil, zip.ErrFormat
	}
	d := &zipDirectory{zip: r, base: directory - int64(offset), records: records}
	// What precedes the zip, such as a program that unpacks it, may count or not.
	if d.base > 0 {
		var header [len(zipEntry)]byte
		if _, err := r.ReadAt(header[:], int64(offset)); err == nil && string(header[:]) == zipEntry {
			d.base, directory = 0, int64(offset)
		}
	}
	d.size = size - d.base
	d.rest = bufio.NewReaderSize(io.NewSectionReader(r, directory, size-directory), 64<<10)
	return d, nil
}

// next returns the next entries, or io.EOF after the last. They can be opened until next is
// called again.
func (d *zipDirectory) next() ([]*zip.File, error) {
	le := binary.LittleEndian
	d.part = d.part[:0]
	entries := 0
	for entries < partEntries && len(d.part) < partBytes {
		header, err := d.rest.Peek(zipEntrySize)
		if err != nil && err != io.EOF {
			return nil, err
		}
		if err != nil || !bytes.HasPrefix(header, []byte(zipEntry)) {
			break
		}
		length := zipEntrySize
		for _, field := range []int{28, 30, 32} { // lengths of name, extra field and comment
			length += int(le.Uint16(header[field:]))
		}
		before := len(d.part)
		d.part = slices.Grow(d.part, length)[:before+length]
		if _, err := io.ReadFull(d.rest, d.part[before:]); err != nil {
			if err == io.ErrUnexpectedEOF {
				err = zip.ErrFormat
			}
			return nil, err
		}
		entries++
	}
	d.read += uint64(entries)
	if entries == 0 {
		if uint16(d.read) != uint16(d.records) { // without zip64, no more bits are there
			return nil, zip.ErrFormat
		}
		return nil, io.EOF
	}
	directory := d.size + partGap
	end := directory + int64(len(d.part))
	d.part = append(le.AppendUint64(append(d.part, zip64End...), zip64EndSize-12), make([]byte, 12)...)
	for _, v := range []int64{int64(entries), int64(entries), end - directory, directory} {
		d.part = le.AppendUint64(d.part, uint64(v))
	}
	d.part = append(le.AppendUint64(append(d.part, zipLocator+"\x00\x00\x00\x00"...), uint64(end)), 1, 0, 0, 0)
	d.part = append(append(append(d.part, zipEnd+"\x00\x00\x00\x00"...), bytes.Repeat([]byte{0xff}, 12)...), 0, 0)
	in, err := zip.NewReader(d, directory+int64(len(d.part)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	return in.File, nil
}

// partGap is between the content and a part. Package zip looks for the end in so many bytes,
// which then contain nothing of the content.
const partGap = 1 << 10

// ReadAt implements io.ReaderAt for a part: the zip, a gap and the part.
func (d *zipDirectory) ReadAt(p []byte, at int64) (int, error) {
	if at < d.size {
		if at += d.base; at < 0 {
			return 0, zip.ErrFormat
		}
		return d.zip.ReadAt(p, at) // to its end at most
	}
	n := int(min(max(partGap-(at-d.size), 0), int64(len(p))))
	clear(p[:n])
	if part := max(at-d.size-partGap, 0); part < int64(len(d.part)) {
		n += copy(p[n:], d.part[part:])
	}
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}
