package archive_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor/internal/archive"
)

// An entryOf is what one entry of an archive says.
type entryOf struct{ name, content string }

// packageZip is what package zip finds in a zip, which it reads as a whole.
func packageZip(content []byte) (list []entryOf, err error) {
	in, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil && !errors.Is(err, zip.ErrInsecurePath) {
		return nil, err
	}
	for _, e := range in.File {
		f, err := e.Open()
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(f)
		if err != nil {
			return nil, err
		}
		list = append(list, entryOf{e.Name, string(text)})
	}
	return list, nil
}

// normalized is what is found in a zip that has only files.
func normalized(t *testing.T, content []byte) (list []entryOf, err error) {
	t.Helper()
	var out bytes.Buffer
	if err := archive.Normalize(t.Context(), &out, file(t, content), archive.Zip, archive.Limits{}, nil); err != nil {
		return nil, err
	}
	in := tar.NewReader(&out)
	for {
		h, err := in.Next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(in)
		if err != nil {
			return nil, err
		}
		list = append(list, entryOf{h.Name, string(text)})
	}
}

func TestAZipIsReadAsPackageZipReadsIt(t *testing.T) {
	var many, long []zipped
	for i := range 2500 {
		many = append(many, zipped{fmt.Sprint("f", i), fmt.Sprint("content ", i), 0o644})
		long = append(long, zipped{fmt.Sprint(strings.Repeat("x", 1000), i), fmt.Sprint(i), 0o644})
	}
	whole := zipOf(many...)
	commented := func(comment string) []byte {
		content := slices.Clone(whole)
		content[len(content)-2], content[len(content)-1] = byte(len(comment)), byte(len(comment)>>8)
		return append(content, comment...)
	}
	for name, content := range map[string][]byte{
		"nothing in it":                  zipOf(),
		"one file":                       zipOf(many[:1]...),
		"exactly one part":               zipOf(many[:1000]...),
		"several parts":                  whole,
		"parts of many bytes":            zipOf(long...),
		"a comment":                      commented("hello"),
		"a long comment":                 commented(strings.Repeat("PK\x05\x06", 10_000)),
		"something before it":            append([]byte("#!/bin/sh\n"), whole...),
		"zip64":                          hostileZip(1, 1, 1),
		"zip64 after something":          append([]byte("#!/bin/sh\n"), hostileZip(1, 1, 1)...),
		"more entries than it says":      hostileZip(1, 3, 2),
		"fewer entries than it says":     hostileZip(1, 1, 2),
		"a number cut to 16 bits":        hostileZip(1, 1, 1<<16+1),
		"the end cut off":                whole[:len(whole)-1],
		"the directory alone":            whole[bytes.Index(whole, []byte("PK\x01\x02")):],
		"more than 64 KiB after its end": append(slices.Clone(whole), make([]byte, 70_000)...),
		"something after its end":        append(slices.Clone(whole), "more"...),
		"only an end":                    []byte("PK\x05\x06"),
		"empty":                          nil,
	} {
		t.Run(name, func(t *testing.T) {
			want, refused := packageZip(content)
			got, err := normalized(t, content)
			if (err == nil) != (refused == nil) || !slices.Equal(got, want) {
				t.Errorf("%d entries, %v; package zip finds %d, %v", len(got), err, len(want), refused)
			}
		})
	}
}

func FuzzAZipIsReadAsPackageZipReadsIt(f *testing.F) {
	f.Add(zipOf(zipped{"a/b", "c", 0o644}, zipped{"l", "a", 0o644}))
	f.Add(append([]byte("before"), hostileZip(1, 1, 1)...))
	f.Fuzz(func(t *testing.T, content []byte) {
		if len(content) > 1<<16 {
			return
		}
		got, err := normalized(t, content)
		if err != nil {
			return // much is refused that package zip takes
		}
		want, err := packageZip(content)
		if err != nil || len(got) != len(want) {
			t.Errorf("%d entries; package zip finds %d, %v", len(got), len(want), err)
		}
	})
}

// An entry may have 192 KiB of name, extra field and comment, of which only the name counts
// for anything, and a directory half a million entries.
func TestTheTextsOfAZipTakeLittleMemory(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := zip.NewWriter(f)
	extra := make([]byte, 60_000)
	for i := range 1000 {
		if _, err := w.CreateHeader(&zip.FileHeader{Name: fmt.Sprint(i), Comment: string(extra), Extra: extra}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w = nil
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	p := &peak{before: before.HeapAlloc}
	if err := archive.Normalize(t.Context(), p, f, archive.Zip, archive.Limits{}, nil); err != nil {
		t.Fatal(err)
	}
	if p.most > 4<<20 {
		t.Errorf("it takes %d KiB of memory", p.most>>10)
	}
}

// A peak is a writer that looks now and then at how much memory is in use.
type peak struct {
	before uint64
	writes int
	most   int64
}

func (p *peak) Write(b []byte) (int, error) {
	if p.writes++; p.writes%100 == 0 {
		var now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&now)
		p.most = max(p.most, int64(now.HeapAlloc)-int64(p.before))
	}
	return len(b), nil
}
