package archive_test

import (
	"archive/zip"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/executor/internal/archive"
)

func TestAZipThatIsNotWhatItSaysIsRefused(t *testing.T) {
	for _, method := range []uint16{zip.Store, zip.Deflate} {
		var buffer bytes.Buffer
		w := zip.NewWriter(&buffer)
		f, err := w.CreateHeader(&zip.FileHeader{Name: "f", Method: method})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(bytes.Repeat([]byte("content"), 1000)); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		good := buffer.Bytes()
		directory := bytes.LastIndex(good, []byte("PK\x01\x02"))
		for name, edit := range map[string]func([]byte){
			"another checksum": func(b []byte) { b[directory+16] ^= 1 },
			"a smaller size":   func(b []byte) { b[directory+24]-- },
		} {
			bad := bytes.Clone(good)
			edit(bad)
			if err := normalizeZip(t, good); err != nil {
				t.Errorf("method %d, unchanged: %v", method, err)
			}
			if err := normalizeZip(t, bad); err == nil {
				t.Errorf("method %d, %s: it is unpacked", method, name)
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
