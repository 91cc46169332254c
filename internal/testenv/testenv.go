// Package testenv lets a test say what its machine lacks. It is the only place
// in the module where a test may skip. [Output] is what tests of many packages
// read a program's output with.
package testenv

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// RequireAll is the environment variable that turns every missing part into a
// failure. scripts/test sets it to 1 in CI.
const RequireAll = "DIEGO_TEST_REQUIRE_ALL"

// Skips is the environment variable with the name of a file, unless it is
// empty. Each skipped test is added to that file, because go test without -v
// does not report skips. scripts/test prints the file at its end.
const Skips = "DIEGO_TEST_SKIPS"

// Missing ends the test because the machine lacks what. It skips on somebody's
// laptop and fails where [RequireAll] is 1. remedy says what to do about it.
func Missing(t testing.TB, what, remedy string) {
	t.Helper()
	if os.Getenv(RequireAll) == "1" {
		t.Fatalf("%s is missing and %s=1 allows no skip: %s", what, RequireAll, remedy)
	}
	if err := note(t.Name() + ": " + what + " is missing: " + remedy); err != nil {
		t.Fatalf("%s names a file that cannot be written: %v", Skips, err)
	}
	t.Skipf("%s is missing: %s", what, remedy)
}

// Root ends a test that needs root, unless root runs it.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, "root", "run the tests as root: real containers take namespaces, mounts and cgroups")
	}
}

// note adds a line to the file of skips. Several processes may do so at once.
func note(line string) error {
	path := os.Getenv(Skips)
	if path == "" {
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = f.WriteString(strings.ReplaceAll(line, "\n", " ") + "\n")
	return errors.Join(err, f.Close())
}
