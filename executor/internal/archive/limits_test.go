package archive_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor/internal/archive"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// block is a header as package tar does not write it.
func block(typeflag byte, name string, size int) []byte {
	b := make([]byte, 512)
	copy(b, name)
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	copy(b[124:], fmt.Sprintf("%011o\x0000000000000\x00", size))
	copy(b[148:], "        ")
	b[156] = typeflag
	copy(b[257:], "ustar\x0000")
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

// record is a header of records that stand before an entry, padded.
func record(typeflag byte, content string) []byte {
	padding := (512 - len(content)%512) % 512
	return append(append(block(typeflag, "x", len(content)), content...), make([]byte, padding)...)
}

func pax(key, value string) string {
	for n := len(key) + len(value) + 3; ; n++ {
		if s := fmt.Sprintf("%d %s=%s\n", n, key, value); len(s) == n {
			return s
		}
	}
}

func TestEveryLimitHasAnErrorThatNamesIt(t *testing.T) {
	limits := archive.Limits{MaxContentBytes: 1 << 20, MaxContentEntries: 100}
	many := func(n int, of ...byte) []byte { return append(bytes.Repeat(of, n), tarOf(regular("f", 0))...) }
	deep := strings.Repeat("d/", archive.MaxDepth)
	entries := make([]tar.Header, 101)
	for i := range entries {
		entries[i] = regular("f", 0)
	}
	tests := []struct {
		name    string
		content []byte
		want    string
	}{
		{"a deep path", tarOf(regular(deep+"d/f", 0)), fmt.Sprintf("deeper than %d directories", archive.MaxDepth)},
		{"a long path", tarOf(regular(strings.Repeat(strings.Repeat("d", 200)+"/", 21)+"f", 0)), "more than 4095 bytes"},
		{"a long path of levels", gz(append(record('x', pax("path", strings.Repeat("d/", 400_000))), block('0', "f", 0)...)), "more than 4095 bytes"},
		{"a long link", tarOf(tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: strings.Repeat("d/", 2048)}), "more than 4095 bytes"},
		{"a long link of a zip", zipOf(zipped{"l", strings.Repeat("x", 5000), os.ModeSymlink | 0o777}), "more than 4095 bytes"},
		{"a deep path of a zip", zipOf(zipped{deep + "d/f", "", 0o644}), fmt.Sprintf("deeper than %d directories", archive.MaxDepth)},
		{"entries", tarOf(entries...), "MaxContentEntries, which is 100"},
		{"records without end", many(5000, record('x', pax("comment", "x"))...), "headers of one entry have more than 1048576 bytes"},
		{"global headers without end", many(5000, record('g', pax("comment", "x"))...), "MaxContentEntries, which is 100"},
		{"long names without end", many(5000, record('L', "name\x00")...), "headers of one entry have more than 1048576 bytes"},
		{"records of every entry", bytes.Repeat(append(record('x', pax("comment", strings.Repeat("x", 500_000))), block('0', "f", 0)...), 20), "4096 bytes for each of MaxContentEntries"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := tree(t, test.content, archive.Detect, limits)
			if !errors.Is(err, archive.ErrTooLarge) || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 300 {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

func TestWhatIsWithinTheLimitsIsExtracted(t *testing.T) {
	deep := strings.Repeat("d/", archive.MaxDepth)
	content := tarOf(regular(deep+"f", 1), regular("e/f", 1), regular(deep+"g", 1), tar.Header{Name: deep, Typeflag: tar.TypeDir, Mode: 0o755},
		tar.Header{Name: "e/up", Typeflag: tar.TypeSymlink, Linkname: "../d"}, regular("e/up/new/h", 1))
	got, err := tree(t, content, archive.Tar, archive.Limits{})
	if err != nil || strings.Count(got, "\n") != 4 || !strings.Contains(got, "a/b/d/new/h") {
		t.Errorf("%v: %s", err, got)
	}
}

// A directory that was entered a moment ago may be another one by now.
func TestADirectoryThatIsReplacedIsNotWrittenTo(t *testing.T) {
	content := tarOf(regular("d/e/f", 1), tar.Header{Name: "d", Typeflag: tar.TypeSymlink, Linkname: "other"},
		tar.Header{Name: "other/", Typeflag: tar.TypeDir, Mode: 0o755}, regular("d/e/g", 2), regular("d", 3))
	got, err := tree(t, content, archive.Tar, archive.Limits{})
	want := "a/b/d -rwxr-xr-x xxx\na/b/other/e/g -rwxr-xr-x xx"
	if got != want || err != nil {
		t.Errorf("%v:\n%s\nwant\n%s", err, got, want)
	}
}

// A way from the root to each directory would cost an archive of deep ones the
// depth of each entry. Whether it is gone is seen by moving it away.
func TestTheWayToTheNextDirectoryBeginsWhereTheLastOneWas(t *testing.T) {
	dir := t.TempDir()
	root, err := tenant.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	deep := strings.Repeat("d/", 100)
	stream := bytes.NewReader(tarOf(regular("a/b/"+deep+"e/one", 1), regular("a/b/"+deep+"f/g/two", 1), regular("a/b/three", 1), regular("a/c/four", 1)))
	moved := false
	r := readerFunc(func(p []byte) (int, error) {
		if _, err := os.Stat(filepath.Join(dir, "a/b", deep, "e/one")); err == nil && !moved {
			moved = true
			if err := os.Rename(filepath.Join(dir, "a/b"), filepath.Join(dir, "moved")); err != nil {
				t.Error(err)
			}
		}
		return stream.Read(p)
	})
	if err := archive.Extract(context.Background(), root, ".", r, -1, -1); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"moved/three", "a/c/four"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestEveryTransferEndsWithItsContext(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	for format, content := range map[archive.Format][]byte{
		archive.Tar: tarOf(regular("f", 1)), archive.TGZ: gz(tarOf(regular("f", 1))), archive.Zip: zipOf(zipped{"f", "x", 0o644}),
	} {
		var out bytes.Buffer
		if err := archive.Normalize(ended, &out, file(t, content), format, archive.Limits{}, nil); !errors.Is(err, context.Canceled) || out.Len() > 0 {
			t.Errorf("%s: %v after %d bytes", format, err, out.Len())
		}
	}
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "d/e"), 0o755); err != nil {
		t.Fatal(err)
	}
	root, err := tenant.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := archive.Extract(ended, root, "x", bytes.NewReader(tarOf(regular("f", 1))), -1, -1); !errors.Is(err, context.Canceled) {
		t.Errorf("an extraction: %v", err)
	}
	if err := archive.Pack(ended, root, "d", io.Discard); !errors.Is(err, context.Canceled) {
		t.Errorf("packing: %v", err)
	}
}

// A stream of nothing but headers: nothing is written that could fail.
func TestHeadersWithoutEndEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	header := record('x', pax("comment", "x"))
	reads, at := 0, 0
	in := archive.NewReader(ctx, readerFunc(func(p []byte) (int, error) {
		if reads++; reads == 100 {
			cancel()
		}
		n := copy(p, header[at:])
		at = (at + n) % len(header)
		return n, nil
	}), 0)
	if _, err := in.Next(); !errors.Is(err, context.Canceled) || reads > 101 {
		t.Errorf("after %d reads: %v", reads, err)
	}
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestDirectoriesThatNobodyNamesAreCounted(t *testing.T) {
	limits := archive.Limits{MaxContentEntries: 10}
	var sorted, jumping []tar.Header
	for i := range 4 {
		sorted = append(sorted, tar.Header{Name: fmt.Sprintf("a/%d/", i), Typeflag: tar.TypeDir, Mode: 0o755}, regular(fmt.Sprintf("a/%d/f", i), 0))
		jumping = append(jumping, regular(fmt.Sprintf("%d/b/c/f", i), 0))
	}
	var disk int64
	if err := archive.Normalize(t.Context(), io.Discard, file(t, tarOf(sorted...)), archive.Tar, limits, &disk); err != nil || disk != 9*4096 {
		t.Errorf("8 entries that need a directory take %d bytes, %v", disk, err)
	}
	if _, err := tree(t, tarOf(jumping...), archive.Tar, limits); !errors.Is(err, archive.ErrTooLarge) {
		t.Errorf("4 entries that need 12 directories: %v", err)
	}
	limits = archive.Limits{MaxDisk: 3 * 4096}
	if _, err := tree(t, tarOf(regular("f", 4097), regular("g", 1)), archive.Tar, limits); err != nil {
		t.Errorf("three blocks: %v", err)
	}
	if _, err := tree(t, tarOf(regular("f", 4097), regular("g", 4097)), archive.Tar, limits); !errors.Is(err, archive.ErrTooLarge) {
		t.Errorf("four blocks: %v", err)
	}
}

// A gate is a writer that waits until it is opened.
type gate struct{ reached, open chan struct{} }

func (g gate) Write(p []byte) (int, error) {
	select {
	case <-g.open:
	case g.reached <- struct{}{}:
		<-g.open
	}
	return len(p), nil
}

// What takes the files of a zip may take as long as its tenant likes.
func TestZipsWhoseFilesNobodyTakesHoldNoneUpAndTakeLittleMemory(t *testing.T) {
	var many []zipped
	for i := range 25_000 {
		many = append(many, zipped{name: strconv.Itoa(i), mode: 0o644})
	}
	const all = 8
	content := zipOf(many...)
	g := gate{reached: make(chan struct{}, all), open: make(chan struct{})}
	ended := make(chan error, all)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range all {
		f := file(t, content)
		go func() { ended <- archive.Normalize(ctx, g, f, archive.Zip, archive.Limits{}, nil) }()
	}
	for i := range all {
		select {
		case <-g.reached:
		case <-time.After(20 * time.Second):
			t.Fatalf("only %d of %d zips are unpacked while nobody takes their files", i, all)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	if took := int64(after.HeapAlloc) - int64(before.HeapAlloc); took > all<<20 {
		t.Errorf("%d zips take %d KiB of memory", all, took>>10)
	}
	cancel()
	close(g.open)
	for range all {
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("it ends with %v", err)
		}
	}
}
