// Command generate brings the written API up to date: its argument is the root of
// the module. It keeps what is gone without being named in the changelog, so that
// the test of package exported fails until that is done.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/diegosdk/diego/internal/exported"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate root")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func generate(root string) error {
	dir := filepath.Join(root, exported.Dir)
	before, err := exported.Load(dir)
	if err != nil {
		return err
	}
	now, err := exported.Read(root)
	if err != nil {
		return err
	}
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return err
	}
	unreleased := exported.Unreleased(string(changelog))
	for _, line := range exported.Compare(before, now, unreleased).Unnamed {
		fmt.Fprintf(os.Stderr, "generate: CHANGELOG.md does not name what has changed or is gone, under Unreleased: %s\n", line)
	}
	return exported.Save(dir, exported.Next(before, now, unreleased))
}
