package guids

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestOnlyDirectoriesWithTheNameOfAContainerAreListed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"b", "a", "c d"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if got, err := Dirs(dir); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("they are %q, %v", got, err)
	}
	if got, err := Dirs(filepath.Join(dir, "none")); err != nil || len(got) != 0 {
		t.Errorf("in a directory that is missing they are %q, %v", got, err)
	}
	if _, err := Dirs(filepath.Join(dir, "file")); err == nil {
		t.Error("a file is taken for a directory")
	}
}

func TestAGUIDLeadsNowhere(t *testing.T) {
	for _, guid := range []string{"", ".", "..", "a/b", "/a", "../a", "a\x00", "a\n"} {
		if Valid(guid) {
			t.Errorf("%q is valid", guid)
		}
	}
}
