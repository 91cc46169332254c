//go:build cgo

package sqlstore

import (
	"strings"
	"testing"
)

// Something between the store and the server may drop settings.
func TestASessionWithoutTheSettingsOfTheStoreIsRefusedWithWhatToDo(t *testing.T) {
	for _, x := range []struct {
		dialect  Dialect
		drop     string
		got      string
		want, do string
	}{
		{PostgreSQL, "SET lock_timeout = 0", `"4000 0"`, `"4000 3000"`, "ALTER ROLE … SET lock_timeout = 3000"},
		{PostgreSQL, "SET idle_in_transaction_session_timeout = 0", `"0 3000"`, `"4000 3000"`, "ALTER ROLE … SET idle_in_transaction_session_timeout = 4000"},
		{MySQL, "SET SESSION innodb_lock_wait_timeout = 50", `"4 50 READ-COMMITTED"`, `"4 3 READ-COMMITTED"`, "through a proxy that keeps the settings of a session"},
		{MySQL, "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ", `"4 3 REPEATABLE-READ"`, `"4 3 READ-COMMITTED"`, "connect to the server itself"},
	} {
		t.Run(x.drop, func(t *testing.T) {
			for _, d := range servers {
				if d.dialect != x.dialect || d.name == "pgx" {
					continue
				}
				s := mustOpen(t, d.database(t), Options{})
				if err := s.checkBounds(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, err := s.write.Exec(x.drop); err != nil { // its one connection
					t.Fatal(err)
				}
				wantError(t, s.checkBounds(t.Context()), x.got, x.want, x.do)
			}
		})
	}
}

func TestAServerWithoutTLSIsExplained(t *testing.T) {
	dsn := databases[1].database(t)
	_, err := open(t.Context(), strings.Replace(dsn, "sslmode=disable", "sslmode=require", 1), nil)
	wantError(t, err, "SSL is not enabled on the server", "add sslmode=disable to the DSN")
}

// Each statement costs a parse and an answer of its own.
func TestAStepOnMySQLTakesFiveStatements(t *testing.T) {
	s := mustOpen(t, databases[2].database(t), Options{})
	for i, guid := range deployed(t, s, 1) {
		if err := live(t.Context(), s, guid, i); err != nil {
			t.Fatal(err)
		}
		sent := func() int64 { return handled(t, s.write, "LIKE 'Questions'") }
		before := sent()
		if err := live(t.Context(), s, guid, i+1); err != nil {
			t.Fatal(err)
		}
		// The last one counts the others.
		if n := sent() - before - 1; n != 4*5 {
			t.Errorf("four steps took %d statements, want 20", n)
		}
	}
}

// A read of the slot, and one round trip for each of the four steps.
func TestALifecycleTakesFiveRoundTrips(t *testing.T) {
	const many = 1000
	for _, d := range servers {
		t.Run(d.name, func(t *testing.T) {
			dsn, w := through(t, d.database(t))
			defer w.close()
			s := mustOpen(t, dsn, Options{})
			guid := deployed(t, s, 1)[0]
			for i := range 3 {
				if err := live(t.Context(), s, guid, i); err != nil {
					t.Fatal(err)
				}
			}
			w.arm(many, frozen, false)
			if err := live(t.Context(), s, guid, 3); err != nil {
				t.Fatal(err)
			}
			w.mu.Lock()
			defer w.mu.Unlock()
			if n := many - w.before; n != 5 {
				t.Errorf("it took %d round trips", n)
			}
		})
	}
}
