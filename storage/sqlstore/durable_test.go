package sqlstore

import (
	"path/filepath"
	"testing"
)

// What SQLite does for a power cut is what the options and the name say.
func TestDurabilityIsWhatTheOptionsOrTheNameSay(t *testing.T) {
	const normal, full, extra = 1, 2, 3
	for _, x := range []struct {
		query string
		full  bool
		want  int
	}{
		{"", false, normal},
		{"", true, full},
		{"?_synchronous=FULL", false, full},
		{"?_synchronous=NORMAL", true, normal},
		{"?_synchronous=EXTRA&mode=rwc", false, extra},
	} {
		s := mustOpen(t, "sqlite:"+filepath.Join(t.TempDir(), "diego.db")+x.query, Options{FullSync: x.full})
		var got int
		if err := s.write.QueryRow("PRAGMA synchronous").Scan(&got); err != nil || got != x.want {
			t.Errorf("%q with FullSync %v: synchronous is %d, want %d: %v", x.query, x.full, got, x.want, err)
		}
	}
}

func TestAParameterThatIsNotKnownIsAnError(t *testing.T) {
	file := "sqlite:" + filepath.Join(t.TempDir(), "diego.db")
	for query, words := range map[string]string{
		"?_sync=FULL":                             "the parameter _sync is not known; there are _synchronous and mode",
		"?_busy_timeout=1":                        "_busy_timeout is not known",
		"?_synchronous=OFF":                       "_synchronous is OFF; want one of NORMAL, FULL, EXTRA",
		"?_synchronous=full":                      "_synchronous is full",
		"?_synchronous=FULL&_synchronous=NORMAL":  "want one of NORMAL, FULL, EXTRA, once",
		"?mode=memory":                            "mode is memory; want one of ro, rw, rwc",
		"?_synchronous=FULL;mode=ro":              "semicolon",
		"?_synchronous=FULL&cache=shared&mode=rw": "cache is not known",
	} {
		wantError(t, CheckDSN(file+query), words)
	}
	for _, d := range servers {
		_, err := Open(t.Context(), withParameter(d.database(t), "no_such_parameter=1"), nil)
		wantError(t, err, "no_such_parameter", "mend the parameters of the DSN")
	}
}
