// Package rclonetest runs rclone for tests: a plugin for volumes that was not
// written for this project. Its volumes are FUSE mounts of directories of this
// host.
//
// A goroutine of rclone hears of each first mount and each last unmount of a
// volume. If the next one comes before that goroutine has seen to a last unmount,
// rclone hangs for good. So a test calls [Plugin.Hold] while a volume is mounted,
// and [Plugin.Release] at most once, at its end.
package rclonetest

import (
	"bufio"
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
	ended  chan struct{} // closed when all that it wrote has been read
	said   bytes.Buffer  // what it wrote, to be read once it has ended
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
		"--allow-other", "--vfs-cache-mode", "writes", "--vfs-write-back", "0s", "-vv")
	stderr, err := p.cmd.StderrPipe()
	if err == nil {
		err = p.cmd.Start()
	}
	if err != nil {
		p.t.Fatal(err)
	}
	watching := make(chan struct{})
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		watches := false
		for s := bufio.NewScanner(stderr); s.Scan(); {
			fmt.Fprintln(&p.said, s.Text())
			if !watches && strings.Contains(s.Text(), "Monitoring 0 volumes") {
				watches = true
				close(watching)
			}
		}
	}()
	select {
	case <-watching:
	case <-p.ended:
		p.t.Fatal("rclone has ended")
	case <-time.After(patience):
		p.t.Fatal("rclone does not watch its volumes")
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
	if p.cmd.Process == nil {
		return // it could not be started
	}
	_ = p.cmd.Process.Kill()
	if p.ended != nil {
		<-p.ended
	}
	_ = p.cmd.Wait()
	for _, path := range p.Paths() {
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			p.t.Errorf("unmounting %s: %v", path, err)
		}
	}
}

// Paths returns where volumes are mounted now.
func (p *Plugin) Paths() (paths []string) {
	p.t.Helper()
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		p.t.Error(err)
	}
	for line := range strings.Lines(string(table)) {
		if path := strings.Fields(line)[1]; filepath.Dir(path) == p.mounts() {
			paths = append(paths, path)
		}
	}
	return paths
}

// mounts is the directory in which the volumes are mounted.
func (p *Plugin) mounts() string { return filepath.Join(p.dir, "mounts") }

// Create makes a volume of an empty directory.
func (p *Plugin) Create(name string) {
	p.t.Helper()
	remote := map[string]string{"remote": p.t.TempDir()}
	if err := p.ask("VolumeDriver.Create", map[string]any{"Name": name, "Opts": remote}, nil); err != nil {
		p.t.Fatal(err)
	}
}

// holder is the id of what the test itself has mounted.
const holder = "test"

// Hold keeps a volume mounted until Release or Kill.
func (p *Plugin) Hold(name string) {
	p.t.Helper()
	if err := p.ask("VolumeDriver.Mount", map[string]string{"Name": name, "ID": holder}, nil); err != nil {
		p.t.Fatal(err)
	}
}

// Release ends a Hold. Nothing may be mounted or unmounted afterwards.
func (p *Plugin) Release(name string) {
	p.t.Helper()
	if err := p.ask("VolumeDriver.Unmount", map[string]string{"Name": name, "ID": holder}, nil); err != nil {
		p.t.Fatal(err)
	}
}

// Mounted returns the ids for which volumes are mounted, sorted, without what
// the test holds.
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
	ids = slices.DeleteFunc(ids, func(id string) bool { return id == holder })
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
