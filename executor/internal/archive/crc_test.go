package archive_test

import (
	"archive/zip"
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/executor/internal/archive"
)

func TestAZipThatIsNotWhatItSaysIsRefused(t *testing.T) {
	file := bytes.Repeat([]byte("content"), 1000)
	link := bytes.Repeat([]byte("a/"), archive.MaxPathBytes)[:archive.MaxPathBytes] // as long as it may be
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		for mode, content := range map[fs.FileMode][]byte{0o644: file, fs.ModeSymlink | 0o777: link} {
			var buffer bytes.Buffer
			w := zip.NewWriter(&buffer)
			h := &zip.FileHeader{Name: "f", Method: method}
			h.SetMode(mode)
			f, err := w.CreateHeader(h)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := f.Write(content); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			good := buffer.Bytes()
			if err := normalizeZip(t, good); err != nil {
				t.Errorf("method %d, %v, unchanged: %v", method, mode, err)
			}
			directory := bytes.LastIndex(good, []byte("PK\x01\x02"))
			for name, edit := range map[string]func([]byte){
				"another checksum": func(b []byte) { b[directory+16] ^= 1 },
				"a smaller size":   func(b []byte) { b[directory+24]-- },
				"an offset beyond": func(b []byte) { b[directory+44] = 1 },
			} {
				bad := bytes.Clone(good)
				edit(bad)
				if err := normalizeZip(t, bad); err == nil {
					t.Errorf("method %d, %v, %s: it is unpacked", method, mode, name)
				}
			}
		}
	}
}

func normalizeZip(t *testing.T, content []byte) error {
	t.Helper()
	name := filepath.Join(t.TempDir(), "zip")
	if err := os.WriteFile(name, content, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	return archive.Normalize(t.Context(), io.Discard, f, archive.Zip, archive.Limits{}, nil)
}
