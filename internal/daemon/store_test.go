package daemon

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/storage/sqlstore"
)

func opening(t *testing.T, args ...string) (*Store, *testenv.Output, *slog.Logger) {
	t.Helper()
	s := new(struct {
		Logging
		Store
	})
	if err := Load(s, args); err != nil {
		t.Fatal(err)
	}
	log := new(testenv.Output)
	return &s.Store, log, s.Logger(log)
}

// closed is an address where nobody listens.
func closed(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func TestADatabaseThatIsDownIsWaitedForAndThenRefused(t *testing.T) {
	for _, scheme := range []string{"postgres", "mysql"} {
		t.Run(scheme, func(t *testing.T) {
			at := closed(t)
			s, log, logger := opening(t, "--store", scheme+"://me:topsecret@"+at+"/diego", "--store-wait", "600ms")
			_, err := s.Open(t.Context(), nil, logger)
			if err == nil || !strings.Contains(err.Error(), "could not be reached for 600ms") || !strings.Contains(err.Error(), at) {
				t.Errorf("%v", err)
			}
			if !strings.Contains(log.String(), "trying again") || strings.Contains(log.String()+err.Error(), "topsecret") {
				t.Error(log.String(), err)
			}
		})
	}
}

func TestWhatTimeDoesNotMendIsRefusedAtOnce(t *testing.T) {
	for dsn, want := range map[string]string{
		"oracle://host/db":                     "begins with none of sqlite:",
		"sqlite:" + t.TempDir() + "/no/dir.db": "unable to open database file",
		"postgres://host:port/db":              "want one like postgres://",
	} {
		s, log, logger := opening(t, "--store", dsn)
		if _, err := s.Open(t.Context(), nil, logger); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dsn, err)
		}
		if log.String() != "" {
			t.Error(log.String())
		}
	}
}

// What a setting cannot do must not be set.
func TestDurabilityOfAServerIsASettingOfItsOwn(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--store", "sqlite:x.db", "--store-sync", "normal"}, ""},
		{[]string{"--store", "postgres://host/db"}, ""},
		{[]string{"--store", "postgres://host/db", "--store-sync", "full"}, "store_sync: full: no such setting, as it is for SQLite only"},
		{[]string{"--store", "mysql://u:p@host/db", "--store-sync", "normal"}, "innodb_flush_log_at_trx_commit of MySQL"},
	} {
		err := Load(new(sealing), tt.args)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
}

func TestThePoolerOfAServerIsNoSettingForSQLite(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://host/db":  "",
		"mysql://u:p@host/db": "",
		"sqlite:x.db":         "store_one_by_one: true: no such setting for SQLite",
	} {
		err := Load(new(sealing), []string{"--store", dsn, "--store-one-by-one"})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", dsn, err)
		}
	}
}

func TestSettingsOfTheStoreReachIt(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want sqlstore.Options
	}{
		{nil, sqlstore.Options{Events: 100_000, EventBytes: 256 << 20, MaxConns: 16, Remember: 65_536, FullSync: true}},
		{
			[]string{"--store-events", "1000", "--store-event-bytes", "16777216", "--store-conns", "2", "--store-sync", "normal", "--store-remember", "0", "--store-no-migrations"},
			sqlstore.Options{Events: 1000, EventBytes: 16 << 20, MaxConns: 2, Remember: -1, NoMigrations: true},
		},
	} {
		s, _, _ := opening(t, append([]string{"--store", "sqlite:x.db"}, tt.args...)...)
		if got := *s.options(nil, nil); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: %+v, want %+v", tt.args, got, tt.want)
		}
	}
}

func TestADatabaseWithAnOlderSchemaIsRefusedWithoutMigrations(t *testing.T) {
	s, log, logger := opening(t, "--store", "sqlite:"+filepath.Join(t.TempDir(), "diego.db"), "--store-no-migrations")
	store, err := s.Open(t.Context(), nil, logger)
	if err == nil {
		_ = store.Close()
	}
	if wrong := (*sqlstore.SchemaError)(nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "without the setting store_no_migrations") || log.String() != "" {
		t.Errorf("%v: %s", err, log.String())
	}
}

func TestWaitingForADatabaseEndsWithTheContext(t *testing.T) {
	s, _, logger := opening(t, "--store", "postgres://me@"+closed(t)+"/diego", "--store-wait", "1h")
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := s.Open(ctx, nil, logger); !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestAFileIsOpenedAndClosedToOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "diego.db")
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	s, log, logger := opening(t, "--store", "sqlite:"+path)
	store, err := s.Open(t.Context(), nil, logger)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || !strings.Contains(log.String(), "now only its owner can") {
		t.Errorf("it is %v, %v: %s", info.Mode(), err, log.String())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
