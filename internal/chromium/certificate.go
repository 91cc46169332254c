package chromium

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/diegosdk/diego/internal/testenv"
)

// Files are PEM files for a browser: a client certificate with its key, or two
// empty names, and the authority of the server.
type Files struct{ Cert, Key, CA string }

// OpenAs is [Open] for a browser into which somebody has imported the files. It
// shows the certificate to the server with that origin, such as
// https://127.0.0.1:8443, without asking which. It also needs Debian's packages
// libnss3-tools and openssl.
func OpenAs(t testing.TB, origin string, f Files) *Page {
	t.Helper()
	for _, program := range []string{"certutil", "pk12util", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			testenv.Missing(t, program, "install Debian's packages libnss3-tools and openssl")
		}
	}
	return open(t, func(home string) error { return prepare(home, origin, f) })
}

// prepare fills the home directory of a browser.
func prepare(home, origin string, f Files) error {
	known, profile := filepath.Join(home, ".pki", "nssdb"), filepath.Join(home, "Default")
	for _, dir := range []string{known, profile} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	database, bundle := "sql:"+known, filepath.Join(home, "client.p12")
	steps := [][]string{
		{"certutil", "-N", "-d", database, "--empty-password"},
		{"certutil", "-A", "-d", database, "-n", "authority", "-t", "C,,", "-i", f.CA},
	}
	if f.Cert != "" {
		steps = append(steps,
			[]string{"openssl", "pkcs12", "-export", "-in", f.Cert, "-inkey", f.Key, "-name", "client", "-out", bundle, "-passout", "pass:"},
			[]string{"pk12util", "-d", database, "-i", bundle, "-W", ""})
	}
	for _, step := range steps {
		if output, err := exec.Command(step[0], step[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", step[0], err, output)
		}
	}
	type object = map[string]any
	settings, err := json.Marshal(object{"profile": object{"content_settings": object{"exceptions": object{
		"auto_select_certificate": object{origin + ",*": object{"setting": object{"filters": []object{{}}}}},
	}}}})
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(profile, "Preferences"), settings, 0o600)
}
