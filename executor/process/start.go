//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/stdio"
)

// defaultPath is where programs are looked up if the environment has no PATH.
const defaultPath = "/usr/local/bin:/usr/bin:/bin"

// A leader is the first process of a session. Its pid alone names it until it
// is reaped, pid and started do so for ever.
type leader struct {
	pid     int
	started string
}

// A process is the leader of a session in a container.
type process struct {
	leader
	container      *container
	stdout, stderr *stdio.Pipe

	// mu orders signals before the moment in which the pid becomes free.
	mu     sync.Mutex
	reaped bool
}

// Start implements [executor.ContainerBackend].
func (b *Backend) Start(ctx context.Context, guid string, spec executor.ProcessSpec) (executor.Process, error) {
	c, err := b.find(guid)
	if err != nil {
		return nil, err
	}
	if err := c.enter(); err != nil {
		return nil, err
	}
	defer c.life.RUnlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cmd, err := c.command(spec, b.options.SwitchUser)
	if err != nil {
		return nil, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	return c.run(cmd, spec, null)
}

// run starts the process of a command. The caller holds life for reading.
func (c *container) run(cmd command, spec executor.ProcessSpec, stdin *os.File) (*process, error) {
	begun, err := stdio.Begin(&c.mu, c.guid, c.processes, (*process).finished, &c.beginning)
	if err != nil {
		return nil, err
	}
	defer begun()
	p := &process{container: c}
	open := func(w io.Writer) (*stdio.Pipe, error) { return stdio.New(w, &c.pace) }
	if p.stdout, p.stderr, err = stdio.Both(spec.Stdout, spec.Stderr, open); err != nil {
		return nil, err
	}
	cmd.attr.Files = []*os.File{stdin, p.stdout.Child, p.stderr.Child}
	started, err := os.StartProcess(cmd.path, cmd.argv, &cmd.attr)
	if err == nil {
		p.leader = leader{started.Pid, startTime(started.Pid)}
		started.Release() // wait below reaps it
	}
	p.stdout.Started()
	p.stderr.Started()
	if err != nil {
		p.close()
		return nil, c.errStart(spec, err)
	}
	limit(p.pid, spec.Limits)
	c.mu.Lock()
	c.processes[p] = struct{}{}
	c.mu.Unlock()
	go c.watch(p, spec.Exited)
	return p, nil
}

// watch reports the end of a process.
func (c *container) watch(p *process, exited func(executor.Exit)) {
	status, usage := p.wait()
	p.stdout.Drain()
	p.stderr.Drain()
	c.mu.Lock()
	c.spent += usage
	c.mu.Unlock()
	var e executor.Exit
	if status.Signaled() {
		e.Signal = int(status.Signal())
	} else {
		e.Status = status.ExitStatus()
	}
	if exited != nil {
		exited(e)
	}
}

// lookTimeout bounds how long a signal waits for a look at the host.
const lookTimeout = 5 * time.Second

// Signal implements [executor.Process]. It looks first at what runs in the
// container: once the process has ended, nobody sees whose children those are that
// have cleared their environment. If nobody can look, it signals the process all the
// same, and the log says what may follow.
func (p *process) Signal(s executor.Signal) error {
	ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
	defer cancel()
	err := p.container.remember(ctx)
	if sent := p.signal(s); sent && err != nil {
		p.container.log.Warn("a process was signalled although nobody could look at what it has started: "+
			"what has cleared its environment may outlive the container", "guid", p.container.guid, "signal", s, "error", err)
	}
	return nil
}

// signal signals the process group and reports whether the process is there.
func (p *process) signal(s executor.Signal) bool { return p.send(number(s)) }

func (p *process) send(s syscall.Signal) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.reaped && !groupsOutliveLeaders {
		return false
	}
	return syscall.Kill(-p.pid, s) == nil
}

func number(s executor.Signal) syscall.Signal {
	if s == executor.Kill {
		return syscall.SIGKILL
	}
	return syscall.SIGTERM
}

// finished reports whether the process is gone and nobody is left who could
// write its output.
func (p *process) finished() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reaped && p.stdout.Done() && p.stderr.Done() &&
		(!groupsOutliveLeaders || syscall.Kill(-p.pid, 0) != nil)
}

// close returns when the writers of the process are no longer used.
func (p *process) close() {
	p.stdout.Close()
	p.stderr.Close()
}

// A command is what os.StartProcess needs.
type command struct {
	path string
	argv []string
	attr os.ProcAttr
}

func (c *container) command(spec executor.ProcessSpec, switchUser bool) (command, error) {
	cmd := command{argv: append([]string{spec.Path}, spec.Args...)}
	cmd.attr.Sys = &syscall.SysProcAttr{Setsid: true}
	if switchUser {
		credential, err := c.lookup(spec.User)
		if err != nil {
			return cmd, err
		}
		cmd.attr.Sys.Credential = credential
	}

	cmd.attr.Dir = c.dir
	if spec.Dir != "" {
		cmd.attr.Dir = c.resolve(spec.Dir)
	}
	if info, err := os.Stat(cmd.attr.Dir); err != nil || !info.IsDir() {
		return cmd, &executor.BackendError{Kind: executor.ErrNoFile, GUID: c.guid, Detail: "the working directory " + spec.Dir, Cause: err}
	}

	searched := defaultPath
	env := map[string]int{}
	add := func(name, value string) {
		if at, twice := env[name]; twice {
			cmd.attr.Env[at] = name + "=" + value
			return
		}
		env[name] = len(cmd.attr.Env)
		cmd.attr.Env = append(cmd.attr.Env, name+"="+value)
	}
	add("PATH", searched)
	add("HOME", c.dir)
	for _, v := range spec.Env {
		add(v.Name, v.Value)
		if v.Name == "PATH" {
			searched = v.Value
		}
	}
	add(containerDirVar, c.dir)

	switch {
	case path.IsAbs(spec.Path):
		cmd.path = c.resolve(spec.Path)
	case strings.Contains(spec.Path, "/"):
		cmd.path = filepath.Join(cmd.attr.Dir, spec.Path)
	default:
		for _, dir := range filepath.SplitList(searched) {
			candidate := c.resolve(path.Join("/", dir, spec.Path))
			if info, err := os.Stat(candidate); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
				cmd.path = candidate
				return cmd, nil
			}
		}
		return cmd, &executor.BackendError{Kind: executor.ErrNoCommand, GUID: c.guid,
			Detail: fmt.Sprintf("%s is not in PATH %s", spec.Path, searched), Cause: fs.ErrNotExist}
	}
	return cmd, nil
}

// resolve looks an absolute path up below the container's directory and, if
// it is not there, on the host.
func (c *container) resolve(p string) string {
	inside := filepath.Join(c.dir, path.Clean("/"+p))
	if _, err := os.Stat(inside); err == nil {
		return inside
	}
	return p
}

// lookup finds a user of the host, by name or number.
func (c *container) lookup(name string) (*syscall.Credential, error) {
	u, err := user.Lookup(name)
	if err != nil {
		var byID error
		if u, byID = user.LookupId(name); byID != nil {
			return nil, &executor.BackendError{Kind: executor.ErrNoUser, GUID: c.guid, Detail: strconv.Quote(name), Cause: err}
		}
	}
	uid, uidErr := strconv.ParseUint(u.Uid, 10, 32)
	gid, gidErr := strconv.ParseUint(u.Gid, 10, 32)
	if err := errors.Join(uidErr, gidErr); err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// errStart names why a program could not be executed.
func (c *container) errStart(spec executor.ProcessSpec, err error) error {
	for _, known := range []error{fs.ErrNotExist, fs.ErrPermission, syscall.ENOEXEC, syscall.EISDIR, syscall.ENOTDIR, syscall.ELOOP} {
		if errors.Is(err, known) {
			return &executor.BackendError{Kind: executor.ErrNoCommand, GUID: c.guid, Detail: spec.Path, Cause: err}
		}
	}
	return fmt.Errorf("container %q: start %s: %w", c.guid, spec.Path, err)
}
