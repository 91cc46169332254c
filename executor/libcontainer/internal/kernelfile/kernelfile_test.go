//go:build linux

package kernelfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAFileIsReadAsItIs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"", "1\n", strings.Repeat("x", MaxBytes), strings.Repeat("y", MaxBytes+1)} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := Read(path); err != nil || got != text[:min(len(text), MaxBytes)] {
			t.Errorf("of %d bytes it read %d, %v", len(text), len(got), err)
		}
	}
	if _, err := Read(path + "s"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
}

func TestNumbers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	for _, test := range []struct {
		text, key string
		want      int64
		there     bool
	}{
		{"17\n", "", 17, true},
		{"17", "", 17, true},
		{"max\n", "", 0, false},
		{"-1\n", "", -1, false},
		{"", "", 0, false},
		{"low 1\nlower 2\nown 3\n", "lower", 2, true},
		{"low 1\nlower 2\nown 3\n", "low", 1, true},
		{"low 1\nlower 2\nown 3", "own", 3, true},
		{"low 1\nlower 2\nown 3\n", "we", 0, false},
		{"low 1\nlower 2\nown 3\n", "", 0, false},
	} {
		if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, there := Number(path, test.key); there != test.there || there && got != test.want {
			t.Errorf("%q behind %q: %d, %v, want %d, %v", test.text, test.key, got, there, test.want, test.there)
		}
	}
	if _, there := Number(path+"s", ""); there {
		t.Error("there is a number without a file")
	}
}
