package terminal

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAFileThatIsNoTerminalHasNoWidth(t *testing.T) {
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	null, err := os.Open(os.DevNull) // a device, but not a terminal
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for _, f := range []*os.File{file, null} {
		if width, is := Width(f); is || width != 0 || Of(f) != nil {
			t.Errorf("%s is taken for a terminal with %d columns", f.Name(), width)
		}
	}
}
