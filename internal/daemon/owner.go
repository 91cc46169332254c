package daemon

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
)

// Owner names the process that has the directory. It is the same for all processes that
// take the directory one after the other while the host is up: the lock proves
// that the one before is over, so the next may follow it in everything that it
// held by that name. After the host was restarted, and in a copy of the
// directory, where the lock proves nothing of the kind, the name is a new one.
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

// token is what was noted of the directory, if the lock is the one that it was
// noted with.
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
