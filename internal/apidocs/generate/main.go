// Command generate writes docs/api.md: its arguments are the root of the module
// and the file.
package main

import (
	"fmt"
	"os"

	"github.com/diegosdk/diego/internal/apidocs"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: generate root file")
		os.Exit(2)
	}
	page, err := apidocs.Page(os.Args[1])
	if err == nil {
		err = os.WriteFile(os.Args[2], []byte(page), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}
