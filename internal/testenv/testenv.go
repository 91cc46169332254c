// Package testenv is what a test says when its machine lacks something: the
// only place in the module where a test may skip.
package testenv

import (
	"os"
	"testing"
)

// RequireAll is the environment variable that turns every missing part into a
// failure. scripts/test sets it to 1 in CI.
const RequireAll = "DIEGO_TEST_REQUIRE_ALL"

// Missing ends the test because the machine lacks what. It skips on somebody's
// laptop and fails where [RequireAll] is 1. remedy says what to do about it.
func Missing(t testing.TB, what, remedy string) {
	t.Helper()
	if os.Getenv(RequireAll) == "1" {
		t.Fatalf("%s is missing and %s=1 allows no skip: %s", what, RequireAll, remedy)
	}
	t.Skipf("%s is missing: %s", what, remedy)
}
