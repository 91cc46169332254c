package daemon

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
)

// Owner names the process that has the directory. Processes that take the
// directory one after the other get the same name while the host is up. The
// lock proves that the earlier process is over, so the next one may take over
// all that it held under that name. After a restart of the host, and in a copy
// of the directory, the lock proves nothing, and the name is a new one.
func (d *Dir) Owner() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	token, err := d.token()
	if err != nil {
		return "", d.Wrong(err)
	}
	return fmt.Sprintf("%s on %s, %s", d.path, host, token), nil
}

// token is the token in the directory if it was written under the present lock,
// or else a new one, which is then in the directory.
func (d *Dir) token() (string, error) {
	const file = "owner"
	place := lockPlace(d.lock)
	text, err := os.ReadFile(d.In(file))
	if err != nil && !os.IsNotExist(err) {
		return "", err
	}
	if noted, token, _ := strings.Cut(strings.TrimSpace(string(text)), "\n"); place != "" && noted == place && token != "" {
		return token, nil
	}
	token := rand.Text()
	next := d.In(file + ".new")
	if err := os.WriteFile(next, []byte(place+"\n"+token+"\n"), 0o600); err != nil {
		return "", err
	}
	return token, os.Rename(next, d.In(file))
}
