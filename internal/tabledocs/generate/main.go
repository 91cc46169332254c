// Command generate writes the pages of docs/tables into the directory that is
// its argument. It fails if the directory holds anything else.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/diegosdk/diego/internal/tabledocs"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate directory")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for _, p := range tabledocs.Pages() {
		if err := os.WriteFile(filepath.Join(dir, p.Name), []byte(p.Text), 0o644); err != nil {
			return err
		}
	}
	stale, err := tabledocs.Stale(dir)
	if err != nil {
		return err
	}
	if len(stale) > 0 {
		return fmt.Errorf("%s has files that are no pages, remove them: %s", dir, strings.Join(stale, ", "))
	}
	return nil
}
