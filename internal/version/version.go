// Package version says which version a program is.
package version

import (
	"fmt"
	"io"
	"runtime/debug"
)

// Of returns the version of this program and of the Go that built it, or
// "unknown" if the build does not say.
func Of() (program, goVersion string) {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.Main.Version, info.GoVersion
	}
	return "unknown", "unknown"
}

// Print writes the version in one line, as of a program with that name.
func Print(w io.Writer, name string) error {
	program, goVersion := Of()
	_, err := fmt.Fprintf(w, "%s %s, %s\n", name, program, goVersion)
	return err
}
