// Package rclonetest runs rclone for tests: a plugin for volumes that was not
// written for this project. Its volumes are FUSE mounts of directories of this
// host.
package rclonetest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

// patience bounds what rclone has to do; nothing waits for it to pass.
const patience = time.Minute

// A Plugin is an rclone that speaks Docker's volume plugin protocol.
type Plugin struct {
	// Socket is where it listens.
	Socket string

	t      testing.TB
	dir    string
	cmd    *exec.Cmd
	said   bytes.Buffer // what it wrote, to be read once it has ended
	client http.Client
}

// Start starts rclone and ends it with the test. A host without rclone or FUSE
// ends the test.
func Start(t testing.TB) *Plugin {
	t.Helper()
	testenv.Root(t)
	for _, program := range []string{"rclone", "fusermount"} {
		if _, err := exec.LookPath(program); err != nil {
			testenv.Missing(t, program, "install the packages rclone and fuse3")
		}
	}
	if _, err := os.Stat("/dev/fuse"); err != nil {
		testenv.Missing(t, "/dev/fuse", "load the kernel module fuse")
	}
	dir, err := os.MkdirTemp("", "rclone") // the path of a socket has few bytes
	if err != nil {
		t.Fatal(err)
	}
	p := &Plugin{Socket: filepath.Join(dir, "rclone.sock"), t: t, dir: dir}
	p.client.Transport = &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", p.Socket)
	}}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("rclone wrote:\n%s", p.said.Bytes())
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	p.Restart()
	return p
}

// Restart starts rclone again after a Kill, as docs/cells.md says: without the
// list of what was mounted. With two mounts of a volume on that list, rclone
// 1.60 hangs at its start.
func (p *Plugin) Restart() {
	p.t.Helper()
	cache := filepath.Join(p.dir, "cache")
	if err := os.RemoveAll(filepath.Join(cache, "docker-plugin.state")); err != nil {
		p.t.Fatal(err)
	}
	p.cmd = exec.Command("rclone", "serve", "docker", "--config", os.DevNull, "--socket-addr", p.Socket,
		"--base-dir", p.mounts(), "--cache-dir", cache,
		"--allow-other", "--vfs-cache-mode", "writes", "--vfs-write-back", "0s")
	p.cmd.Stdout, p.cmd.Stderr = &p.said, &p.said
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		err := p.ask("Plugin.Activate", nil, nil)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			p.t.Fatalf("rclone does not answer: %v", err)
		}
	}
}

// Kill kills rclone, and unmounts what nobody serves any more.
func (p *Plugin) Kill() {
	p.t.Helper()
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		p.t.Error(err)
	}
	for line := range strings.Lines(string(table)) {
		if path := strings.Fields(line)[1]; filepath.Dir(path) == p.mounts() {
			if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
				p.t.Errorf("unmounting %s: %v", path, err)
			}
		}
	}
}

// mounts is the directory in which the volumes are mounted.
func (p *Plugin) mounts() string { return filepath.Join(p.dir, "mounts") }

// Create makes a volume, and returns the directory that it shows.
func (p *Plugin) Create(name string) (dir string) {
	p.t.Helper()
	dir = filepath.Join(p.dir, name)
	err := os.Mkdir(dir, 0o777)
	if err == nil {
		err = p.ask("VolumeDriver.Create", map[string]any{"Name": name, "Opts": map[string]string{"remote": dir}}, nil)
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return dir
}

// Mounted returns the ids of all that have a volume mounted, sorted.
func (p *Plugin) Mounted() []string {
	p.t.Helper()
	var answer struct {
		Volumes []struct{ Status struct{ Mounts []string } }
	}
	if err := p.ask("VolumeDriver.List", nil, &answer); err != nil {
		p.t.Fatal(err)
	}
	var ids []string
	for _, v := range answer.Volumes {
		ids = append(ids, v.Status.Mounts...)
	}
	slices.Sort(ids)
	return ids
}

// ask makes a call of the protocol.
func (p *Plugin) ask(method string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://rclone/"+method, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	var text json.RawMessage
	var refused struct{ Err string }
	if err := json.NewDecoder(response.Body).Decode(&text); err != nil {
		return fmt.Errorf("%s: %s: %w", method, response.Status, err)
	}
	if err := json.Unmarshal(text, &refused); err != nil {
		return err
	}
	if refused.Err != "" {
		return errors.New(method + ": " + refused.Err)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}
