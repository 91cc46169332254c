//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

func perl(script string) func(*executor.ProcessSpec) {
	return func(s *executor.ProcessSpec) { s.Path, s.Args = "perl", []string{"-e", "$| = 1; " + script} }
}

// The kernel counts terminals for the whole host alone.
func TestAContainerHasAShareOfTheTerminals(t *testing.T) {
	eachIDs(t, func(t *testing.T, ids func(*Options)) {
		f := newFixture(t, ids)
		guid, _ := f.create()
		r := f.as("nobody", guid, "", perl(`my @f; while (@f < 200 && open(my $f, "+<", "/dev/ptmx")) { push @f, $f } print scalar(@f), " opened"`))
		if e := r.end(); !e.Success() || r.stdout.String() != "64 opened" {
			t.Errorf("%v: %s %s", e, r.stdout, r.stderr)
		}
	})
}

// Who has the same user as a child may stop it before it is its program.
func TestAChildThatIsStoppedBeforeItIsItsProgramHoldsNobodyUp(t *testing.T) {
	f := newFixture(t)
	guid, _ := f.create()
	r := f.as("root", guid, "", perl(`print "stops"; while (1) { kill 'STOP', -1 }`))
	r.says("stops")
	began := time.Now()
	for range 100 { // some get through
		if _, err := f.try("root", guid, "sleep 1000"); err != nil {
			if !strings.Contains(err.Error(), "has not become its program") {
				t.Errorf("the error is %v", err)
			}
			return
		}
		if time.Since(began) > patience {
			break
		}
	}
	t.Error("no child was stopped in time, or none failed")
}
