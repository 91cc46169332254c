package daemon

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore"
)

// keyFile makes a file with a key of n bytes.
func keyFile(t *testing.T, name string, n int, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	text := base64.StdEncoding.EncodeToString(bytes.Repeat([]byte(name[:1]), n)) + "\n"
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// sealing has the settings of a store with encryption.
type sealing struct {
	Logging
	Store
	StoreKeys
}

func (s *sealing) Check(report func(name, want string)) {
	s.CheckStore(report)
	s.CheckStoreKeys(report)
}

func TestSettingsOfEncryptionThatDoNotFitAreRefused(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, ""},
		{[]string{"--store-keys", "a=/a,b=/b", "--store-key", "b"}, ""},
		{[]string{"--store-keys", "a=/a", "--store-key", "-", "--store-rotate"}, ""},
		{[]string{"--store-key", "a"}, "store_key: a: want store_keys, too"},
		{[]string{"--store-rotate"}, "store_rotate: true: want store_keys and store_key, too"},
		{[]string{"--store-keys", "a=/a,b=/b"}, "store_key: want the label of the key that encrypts, one of a, b; or - for none"},
		{[]string{"--store-keys", "a=/a", "--store-key", "c"}, "store_key: c: want the label"},
	} {
		err := Load(new(sealing), append([]string{"--store", "sqlite:x.db"}, tt.args...))
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%q: %v", tt.args, err)
		}
	}
}

func TestAKeyFileThatIsOfNoUseIsNamedAndNotShown(t *testing.T) {
	open, group := keyFile(t, "open", 32, 0o604), keyFile(t, "group", 32, 0o640)
	if err := errors.Join(os.Chmod(open, 0o604), os.Chmod(group, 0o640)); err != nil {
		t.Fatal(err)
	}
	short := keyFile(t, "short", 16, 0o600)
	for path, want := range map[string]string{
		filepath.Join(t.TempDir(), "none"): "no such file",
		open:                               "other users of this host can read or write " + open,
		group:                              "other users of this host can read or write " + group,
		short:                              short + " does not hold 32 bytes in base64",
	} {
		_, err := (&StoreKeys{StoreKeyFiles: map[string]string{"a": path}, StoreKey: "a"}).Keys()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), `store_keys: the key "a"`) {
			t.Errorf("%s: %v", path, err)
		}
		if text, _ := os.ReadFile(path); err != nil && len(text) > 0 && strings.Contains(err.Error(), strings.TrimSpace(string(text))) {
			t.Errorf("the error shows the key: %v", err)
		}
	}
	if keys, err := new(StoreKeys).Keys(); keys != nil || err != nil {
		t.Errorf("none are set, and there is %v, %v", keys, err)
	}
}

func TestRecordsAreEncryptedAndKeysRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "diego.db")
	another := filepath.Join(t.TempDir(), "diego.db")
	a, b := "a="+keyFile(t, "a", 32, 0o600), "b="+keyFile(t, "b", 32, 0o600)
	const secret = "correct horse battery staple"
	round := func(do func(*sqlstore.Store), args ...string) string {
		t.Helper()
		s := new(sealing)
		if err := Load(s, append([]string{"--store", "sqlite:" + path}, args...)); err != nil {
			t.Fatal(err)
		}
		log := new(testenv.Output)
		logger := s.Logger(log)
		keys, err := s.Keys()
		if err != nil {
			t.Fatal(err)
		}
		store, err := s.Store.Open(t.Context(), keys, logger)
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		s.Rotate(t.Context(), store, logger)
		do(store)
		return log.String()
	}
	legible := func(path string) bool {
		t.Helper()
		found := false
		for _, suffix := range []string{"", "-wal"} {
			text, err := os.ReadFile(path + suffix)
			if err != nil && suffix == "" {
				t.Fatal(err)
			}
			found = found || bytes.Contains(text, []byte(secret))
		}
		return found
	}
	read := func(s *sqlstore.Store) {
		t.Helper()
		n := 0
		for d, err := range s.Deployments(t.Context(), storage.DeploymentFilter{}) {
			if err != nil {
				t.Fatal(err)
			}
			if n++; d.Annotation != secret {
				t.Errorf("%s has the annotation %q", d.ProcessGUID, d.Annotation)
			}
		}
		if n == 0 {
			t.Error("no deployment is there")
		}
	}
	add := func(name string) func(s *sqlstore.Store) {
		return func(s *sqlstore.Store) { desireNoted(t, s, name, secret) }
	}
	round(add("first"))
	if !legible(path) {
		t.Fatal("without a key the annotation is not found in the file, so this test shows nothing")
	}
	log := round(read, "--store-keys", a, "--store-key", "a", "--store-rotate")
	if !strings.Contains(log, "store_rotate is done") {
		t.Error(log)
	}
	round(func(s *sqlstore.Store) { read(s); add("second")(s) }, "--store-keys", a+","+b, "--store-key", "b")
	log = round(read, "--store-keys", a+","+b, "--store-key", "b", "--store-rotate")
	if !strings.Contains(log, "store_rotate is done") || !strings.Contains(log, "store_key=b") {
		t.Error(log)
	}
	round(add("first"), "--store", "sqlite:"+another, "--store-keys", a, "--store-key", "a")
	if legible(another) {
		t.Error("the annotation can be read in the file")
	}
	round(read, "--store-keys", b, "--store-key", "b") // the old key is not needed any more
	round(func(s *sqlstore.Store) {
		for _, err := range s.Deployments(t.Context(), storage.DeploymentFilter{}) {
			if err == nil {
				t.Error("it is legible without a key")
			}
			break
		}
		err := new(StoreKeys).CheckSealed(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), `store_keys: missing: records of this database are encrypted with the keys ["a" "b"]; set store_keys`) {
			t.Errorf("without a key the check says %v", err)
		}
	})
	keyed := &StoreKeys{StoreKeyFiles: map[string]string{"b": "b"}}
	round(func(s *sqlstore.Store) {
		if err := keyed.CheckSealed(t.Context(), s); err != nil {
			t.Errorf("with keys the check says %v", err)
		}
	}, "--store-keys", b, "--store-key", "-", "--store-rotate")
	round(func(s *sqlstore.Store) {
		read(s)
		if err := new(StoreKeys).CheckSealed(t.Context(), s); err != nil {
			t.Errorf("once all is decrypted the check says %v", err)
		}
	})
}

// desireNoted commits a deployment with an annotation.
func desireNoted(t *testing.T, s *sqlstore.Store, guid, annotation string) {
	t.Helper()
	d := lrp.DesiredLRP{ProcessGUID: guid, Domain: "d", Settings: lrp.Settings{Instances: 1, Annotation: annotation}, Definition: lrp.Definition{
		RunInfo: executor.RunInfo{RootFS: "host:", Action: executor.Action{Run: &executor.RunAction{Path: "true", User: "root"}}},
	}}
	_, _, err := storage.ApplyDeployment(t.Context(), s, guid, nil, func(*lrp.Deployment) (lrp.Change, error) {
		return lrp.CreateFrom(d, time.Now())
	})
	if err != nil {
		t.Fatal(err)
	}
}
