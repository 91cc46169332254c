// Command generate writes the pages of docs/tables into the directory that is its
// first argument, and the page of all fields into the file that is its second. It
// fails if the directory holds anything else.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/diegosdk/diego/internal/tabledocs"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: generate directory fields.md")
		os.Exit(2)
	}
	err := write(os.Args[1])
	if err == nil {
		err = os.WriteFile(os.Args[2], []byte(tabledocs.FieldsPage()), 0o644)
	}
	if err != nil {
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
		return fmt.Errorf("%s has files that are not pages, remove them: %s", dir, strings.Join(stale, ", "))
	}
	return nil
}
