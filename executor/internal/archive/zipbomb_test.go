package archive_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
)

// hostileZip has entries that share one content: many empty blocks of deflate, and a
// block of one byte. It ends as a zip64 with so many records.
func hostileZip(blocks, entries int, records uint64) []byte {
	le := binary.LittleEndian
	content := append(bytes.Repeat([]byte{0, 0, 0, 0xff, 0xff}, blocks), 1, 1, 0, 0xfe, 0xff, 'x')
	sizes := func(b []byte, name string) []byte {
		b = le.AppendUint32(b, crc32.ChecksumIEEE([]byte("x")))
		b = le.AppendUint32(b, uint32(len(content)))
		b = le.AppendUint32(b, 1)
		b = le.AppendUint16(b, uint16(len(name)))
		return le.AppendUint16(b, 0)
	}
	zip := append(sizes([]byte("PK\x03\x04\x14\x00\x00\x00\x08\x00\x00\x00\x00\x00"), "f0000"), "f0000"...)
	zip = append(zip, content...)
	directory := len(zip)
	for i := range entries {
		name := fmt.Sprintf("f%04d", i)
		entry := sizes([]byte("PK\x01\x02\x14\x00\x14\x00\x00\x00\x08\x00\x00\x00\x00\x00"), name)
		zip = append(append(append(zip, entry...), make([]byte, 14)...), name...)
	}
	end := len(zip)
	zip = append(zip, "PK\x06\x06\x2c\x00\x00\x00\x00\x00\x00\x00\x2d\x00\x2d\x00\x00\x00\x00\x00\x00\x00\x00\x00"...)
	for _, v := range []uint64{records, records, uint64(end - directory), uint64(directory)} {
		zip = le.AppendUint64(zip, v)
	}
	zip = append(le.AppendUint64(append(zip, "PK\x06\x07\x00\x00\x00\x00"...), uint64(end)), 1, 0, 0, 0)
	return append(zip, "PK\x05\x06\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00\x00"...)
}

// Package zip makes room for as many entries as a zip64 says that it has, if they would
// fit into the file.
func TestAZipThatClaimsEntriesTakesNoMemoryForThem(t *testing.T) {
	const entries = 1
	zip := hostileZip(20<<20/5, entries, 10<<16+entries)
	file, err := os.Create(filepath.Join(t.TempDir(), "zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.Write(zip); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err = archive.Normalize(context.Background(), io.Discard, file, archive.Detect, archive.Limits{}, nil)
	runtime.ReadMemStats(&after)
	if err != nil { // the number that does not fit into 16 bits is often wrong
		t.Errorf("a zip that claims %d entries: %v", 10<<16+entries, err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("it took %d bytes of memory", took)
	}
}

// Entries that overlap cost time without end: the limits count what they unpack to,
// which is a byte for each.
func TestAZipWhoseEntriesOverlapIsRefused(t *testing.T) {
	const entries = 10
	for claimed, want := range map[int]error{entries: executor.ErrUnsafeArchive, 1: nil} {
		file, err := os.Create(filepath.Join(t.TempDir(), "zip"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if _, err := file.Write(hostileZip(100, claimed, uint64(claimed))); err != nil {
			t.Fatal(err)
		}
		if err := archive.Normalize(context.Background(), io.Discard, file, archive.Detect, archive.Limits{}, nil); !errors.Is(err, want) {
			t.Errorf("%d entries of one content: %v, want %v", claimed, err, want)
		}
	}
}
