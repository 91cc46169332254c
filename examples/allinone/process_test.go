//go:build unix

package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience bounds everything that must happen; nothing waits for it to pass.
const patience = 3 * time.Minute

// binary is the real one, built once for all tests, in a directory that every
// user reaches.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "allinone-test-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "allinone")
	output, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, output)
	}
	return path, os.Chmod(dir, 0o755)
})

func TestMain(m *testing.M) {
	status := m.Run()
	if path, err := binary(); err == nil {
		os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(status)
}

// A program is a running allinone and what it has said.
type program struct {
	t   *testing.T
	cmd *exec.Cmd

	mu    sync.Mutex
	said  *sync.Cond
	lines []string
	seen  int  // by wait
	over  bool // it has ended
}

// command is allinone with any free port, in a process group of its own as a
// shell makes one.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, append([]string{"--listen", "127.0.0.1:0"}, args...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

func start(t *testing.T, args ...string) *program {
	t.Helper()
	return startCommand(t, command(t, args...))
}

func startCommand(t *testing.T, cmd *exec.Cmd) *program {
	t.Helper()
	p := &program{t: t, cmd: cmd}
	p.said = sync.NewCond(&p.mu)
	reader, writer := io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = writer, writer
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		for lines := bufio.NewScanner(reader); lines.Scan(); {
			p.mu.Lock()
			p.lines = append(p.lines, lines.Text())
			p.said.Broadcast()
			p.mu.Unlock()
		}
	}()
	go func() {
		_ = p.cmd.Wait() // the status is looked at by ends
		writer.Close()
		<-read
		p.mu.Lock()
		defer p.mu.Unlock()
		p.over = true
		p.said.Broadcast()
	}()
	t.Cleanup(func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !p.over {
			// A process that is killed leaves things on the host.
			_ = p.cmd.Process.Signal(syscall.SIGINT)
			_ = p.cmd.Process.Signal(syscall.SIGTERM)
			if !p.until(func() bool { return p.over }) {
				_ = p.cmd.Process.Kill()
			}
		}
		if t.Failed() {
			t.Logf("it said:\n%s", strings.Join(p.lines, "\n"))
		}
	})
	return p
}

// until waits for a condition, with the lock. It is false if it is in vain.
func (p *program) until(condition func() bool) bool {
	late := false
	timer := time.AfterFunc(patience, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		late = true
		p.said.Broadcast()
	})
	defer timer.Stop()
	for !condition() && !late {
		p.said.Wait()
	}
	return !late
}

// wait returns the next line that has all parts, which comes after the one
// that the last wait returned.
func (p *program) wait(parts ...string) string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	found := -1
	p.until(func() bool {
		for ; p.seen < len(p.lines) && found < 0; p.seen++ {
			if has(p.lines[p.seen], parts) {
				found = p.seen
			}
		}
		return found >= 0 || p.over
	})
	if found < 0 {
		p.t.Fatalf("it has not said %q (ended: %v)", parts, p.over)
	}
	return p.lines[found]
}

// says waits for a line that has all parts, wherever it stands: it says what
// happens beside that which wait follows.
func (p *program) says(parts ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	found := func() bool { return slices.ContainsFunc(p.lines, func(line string) bool { return has(line, parts) }) }
	if p.until(func() bool { return p.over || found() }); !found() {
		p.t.Fatalf("it has not said %q (ended: %v)", parts, p.over)
	}
}

func has(line string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(line, part) {
			return false
		}
	}
	return true
}

// last is the last line so far that has all parts, or "".
func (p *program) last(parts ...string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.lines) - 1; i >= 0; i-- {
		if has(p.lines[i], parts) {
			return p.lines[i]
		}
	}
	return ""
}

// count is how many lines so far have all parts.
func (p *program) count(parts ...string) (n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.lines {
		if has(line, parts) {
			n++
		}
	}
	return n
}

// signal reaches the whole process group, as Ctrl-C in a terminal does.
func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, s); err != nil {
		p.t.Fatal(err)
	}
}

// ends waits for the end and its exit status.
func (p *program) ends(status int) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.until(func() bool { return p.over }) {
		p.t.Fatal("it has not ended")
	}
	if got := p.cmd.ProcessState.ExitCode(); got != status {
		p.t.Errorf("exit status %d, want %d", got, status)
	}
}

// address is where an instance of the sample was last said to run.
func (p *program) address(index int) string {
	p.t.Helper()
	_, url, found := strings.Cut(p.last(fmt.Sprintf("sample/%d", index), "runs on", " at http://"), " at ")
	if !found {
		p.t.Fatalf("it has not said where sample/%d runs", index)
	}
	return url
}

// ask makes a request that must succeed.
func ask(t *testing.T, method, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %q, %v", method, url, response.Status, body, err)
	}
	return string(body)
}
