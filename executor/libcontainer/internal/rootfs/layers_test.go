//go:build linux

package rootfs

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/archive"
)

func FuzzALayerIsNeverUnpackedOutside(f *testing.F) {
	f.Add(tarOf(entry{name: "../evil", content: "x"}))
	f.Add(tarOf(entry{name: "a/", mode: 0o755}, entry{name: "a/l", link: "../../.."}, entry{name: "a/l/evil", content: "x"}))
	f.Add(tarOf(entry{name: "h", hard: "../canary"}, entry{name: "h", content: "x"}))
	f.Add(tarOf(entry{name: "l", link: "/canary"}, entry{name: "l", content: "x"}, entry{name: ".wh.l"}, entry{name: ".wh..wh..opq"}))
	f.Add(tarOf(entry{name: "l", link: ".."}, entry{name: "l/.wh.canary"}, entry{name: "l/.wh..wh..opq"}))
	f.Add(zipped(tarOf(entry{name: "/a", content: "x"})))
	f.Add(tarOf(entry{name: ".wh..."}))
	f.Add(tarOf(entry{name: "d/", mode: 0o755}, entry{name: "d/.wh.."}, entry{name: "d/.wh..."}, entry{name: ".wh."}))
	f.Fuzz(func(t *testing.T, archive []byte) {
		const limit = 1 << 16
		if len(archive) > limit {
			return
		}
		outside := t.TempDir()
		root := filepath.Join(outside, "root")
		canary := filepath.Join(outside, "canary")
		if err := os.Mkdir(root, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(canary, []byte("alive"), 0o640); err != nil {
			t.Fatal(err)
		}
		l, err := newLayering(root)
		if err != nil {
			t.Fatal(err)
		}
		defer l.root.Close()
		l.bytes = maxImageBytes - 1<<20 // no more than that may be written
		l.apply(t.Context(), bytes.NewReader(archive))
		entries, err := os.ReadDir(outside)
		if err != nil || len(entries) != 2 {
			t.Errorf("outside there are %v, %v", entries, err)
		}
		text, err := os.ReadFile(canary)
		info, statErr := os.Stat(canary)
		if err != nil || statErr != nil || string(text) != "alive" || info.Mode().Perm() != 0o640 {
			t.Errorf("the canary is %q, %v, %v", text, err, info.Mode())
		}
	})
}

func TestWhatAnImageHoldsIsBoundedWhateverItsHeadersSay(t *testing.T) {
	headers := func(all ...*tar.Header) []byte {
		var b bytes.Buffer
		for _, h := range all {
			if err := tar.NewWriter(&b).WriteHeader(h); err != nil { // its content does not follow
				t.Fatal(err)
			}
			b.Write(make([]byte, (h.Size%512+511)/512*512))
		}
		return b.Bytes()
	}
	deep := strings.Repeat("d/", archive.MaxDepth-1)
	for _, test := range []struct {
		name    string
		layer   []byte
		entries int // of the layers below
		want    string
	}{
		{"a size that adds up to a negative one", headers(
			&tar.Header{Typeflag: tar.TypeReg, Name: "small", Size: 1},
			&tar.Header{Typeflag: tar.TypeReg, Name: "large", Size: math.MaxInt64, Format: tar.FormatPAX}), 0, "more than 17179869184 bytes"},
		{"a size beyond the limit", headers(&tar.Header{Typeflag: tar.TypeReg, Name: "large", Size: maxImageBytes + 1, Format: tar.FormatPAX}), 0, "more than 17179869184 bytes"},
		{"directories that no entry names", headers(&tar.Header{Typeflag: tar.TypeReg, Name: deep + "file"}), maxImageEntries - archive.MaxDepth + 1, "more than 1000000 entries"},
		{"as many as there may be", headers(&tar.Header{Typeflag: tar.TypeReg, Name: deep + "file"}), maxImageEntries - archive.MaxDepth, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			l, err := newLayering(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer l.root.Close()
			l.entries = test.entries
			err = l.apply(t.Context(), bytes.NewReader(test.layer))
			if test.want == "" && err != nil || test.want != "" && (!errors.Is(err, archive.ErrTooLarge) || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("the error is %v, want %q", err, test.want)
			}
		})
	}
}

// To chown, the largest number means that the owner stays, which is root.
func TestAnOwnerThatNoFileCanHaveIsRefused(t *testing.T) {
	for _, uid := range []int64{-1, 1<<32 - 1, 1 << 32} {
		n := int(uid)
		for name, e := range map[string]entry{
			"file": {name: "a", content: "x", uid: n}, "directory": {name: "a/", uid: n}, "link": {name: "a", link: "b", uid: n},
		} {
			dir := t.TempDir()
			l, err := newLayering(dir)
			if err != nil {
				t.Fatal(err)
			}
			err = l.apply(t.Context(), bytes.NewReader(tarOf(e)))
			l.root.Close()
			if !errors.Is(err, executor.ErrUnsupported) || !strings.Contains(err.Error(), fmt.Sprintf("the owner %d:%[1]d", uid)) {
				t.Errorf("a %s of %d: %v", name, uid, err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("a %s of %d is there: %v, %v", name, uid, left, err)
			}
		}
	}
}

// An attentive context counts how often it is asked whether it is over, and is over
// after the limit.
type attentive struct {
	context.Context
	asked, limit int
	each         func()
}

func (a *attentive) Err() error {
	if a.each(); a.asked == a.limit {
		return context.Canceled
	}
	a.asked++
	return nil
}

func TestALayerThatEmptiesALargeDirectoryEndsWithItsContextAndHoldsFewNames(t *testing.T) {
	const files, removed, most = 8192, 2000, 1 << 20
	dir := t.TempDir()
	for i := range files {
		if err := os.Mkdir(filepath.Join(dir, fmt.Sprintf("%0250d", i)), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	l, err := newLayering(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer l.root.Close()
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before, held := heap(), uint64(0)
	ctx := &attentive{Context: t.Context(), limit: removed}
	ctx.each = func() {
		if ctx.asked == removed/2 {
			held = max(heap(), before) - before
		}
	}
	root, _, err := Deepest(l.root, ".")
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := empty(ctx, root, "."); !errors.Is(err, context.Canceled) {
		t.Errorf("the error is %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != files-removed {
		t.Errorf("%d directories are left, %v, want %d", len(left), err, files-removed)
	}
	if held > most {
		t.Errorf("it held %d bytes meanwhile, want at most %d", held, most)
	}
	ctx.limit = -1
	if err := empty(ctx, root, "."); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d directories are left, %v", len(left), err)
	}
}

type entry struct {
	name, content, link, hard string
	mode                      int64
	uid                       int
}

func tarOf(entries ...entry) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode, Size: int64(len(e.content)), Uid: e.uid, Gid: e.uid}
		switch {
		case strings.HasSuffix(e.name, "/"):
			h.Typeflag = tar.TypeDir
		case e.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, e.link
		case e.hard != "":
			h.Typeflag, h.Linkname = tar.TypeLink, e.hard
		}
		w.WriteHeader(h)
		w.Write([]byte(e.content))
	}
	w.Close()
	return b.Bytes()
}

func zipped(b []byte) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	w.Write(b)
	w.Close()
	return out.Bytes()
}
