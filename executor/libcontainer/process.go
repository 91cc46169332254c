//go:build linux && cgo && (amd64 || arm64)

package libcontainer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/stdio"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
	"github.com/diegosdk/diego/executor/libcontainer/internal/pid1"
	"github.com/diegosdk/diego/executor/libcontainer/internal/rootfs"
	"github.com/diegosdk/diego/executor/libcontainer/internal/seccomp"
)

// defaultPath is where programs are looked up if the environment has no PATH.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// A process is one that Start has started.
type process struct {
	c              *container
	stdout, stderr *stdio.Pipe
	exited         func(executor.Exit)
	oomBefore      int64  // kills for lack of memory before the start
	id             uint32 // of its start

	// All below are guarded by container.mu.
	answer  *pid1.Answer   // while it is starting
	failure error          // of the start
	pid     int            // 0 until it is known
	killed  bool           // somebody has asked for SIGKILL
	greedy  bool           // endFor has ended it
	cause   string         // of that
	victims int64          // container.victims before the start
	started bool           // it has become its program
	end     *executor.Exit // how it ended
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
	request, err := c.request(spec)
	if err != nil {
		return nil, err
	}
	null, err := c.null()
	if err != nil {
		return nil, err
	}
	defer null.Close()
	if spec.Stdout == nil {
		spec.Stdout = null
	}
	if spec.Stderr == nil {
		spec.Stderr = null
	}
	return c.run(ctx, spec, request, null)
}

// null opens the null device of the container. With shared ids, root there owns
// that of the host and could change its mode by a descriptor.
func (c *container) null() (*os.File, error) {
	handle, err := c.device("/dev/null", unix.Mkdev(1, 3))
	if err != nil {
		return nil, err
	}
	defer handle.Close()
	return os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", handle.Fd()), os.O_RDWR, 0)
}

// device finds a device in the container, without opening it. Root there may have
// put anything in its place.
func (c *container) device(name string, number uint64) (*os.File, error) {
	handle, err := rootfs.Find(c.root, name, unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	var file unix.Stat_t
	if err = unix.Fstat(int(handle.Fd()), &file); err == nil && (file.Mode&unix.S_IFMT != unix.S_IFCHR || file.Rdev != number) {
		err = fmt.Errorf("container %q: %s is not the device that it should be; the container has replaced it", c.guid, name)
	}
	if err != nil {
		handle.Close()
		return nil, err
	}
	return handle, nil
}

// run starts the process of a request. The caller holds life for reading.
func (c *container) run(ctx context.Context, spec executor.ProcessSpec, request pid1.Request, stdin *os.File) (*process, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	begun, err := stdio.Begin(&c.mu, c.guid, c.processes, (*process).finished, &c.beginning)
	if err != nil {
		return nil, err
	}
	defer begun()
	p := &process{c: c, exited: spec.Exited, oomBefore: c.cgroup.OOMKills()}
	open := func(w io.Writer) (*stdio.Pipe, error) {
		return stdio.NewWatched(w, &c.pace, &c.pipes, c.backend.poller)
	}
	if p.stdout, p.stderr, err = stdio.Both(spec.Stdout, spec.Stderr, open); err != nil {
		return nil, err
	}
	err = c.start(ctx, p, request, stdin)
	p.stdout.Started()
	p.stderr.Started()
	if err != nil {
		p.close()
		return nil, c.errStart(spec, err)
	}
	c.mu.Lock()
	c.processes[p] = struct{}{}
	p.started = true
	c.report(p)
	c.mu.Unlock()
	return p, nil
}

// startTimeout is how long a child has to become its program.
const startTimeout = 10 * time.Second

var errSlowStart = fmt.Errorf("it has not become its program within %v, as something in the container holds it up", startTimeout)

// start returns when the process has become its program.
func (c *container) start(ctx context.Context, p *process, request pid1.Request, stdin *os.File) error {
	answer, err := pid1.NewAnswer()
	if err != nil {
		return err
	}
	defer answer.Close()
	over := make(chan struct{})
	key, err := c.backend.poller.WatchEnd(answer.FD(), func() { close(over) })
	if err != nil {
		return err
	}
	defer c.backend.poller.Forget(key)
	c.mu.Lock()
	c.nextID++
	p.id, p.victims, p.answer = c.nextID, c.victims, answer
	c.starting[p] = struct{}{}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.starting, p)
		c.mu.Unlock()
	}()
	request.Limits = append(request.Limits, pid1.Mark(p.id))
	if err := c.conn.Start(answer, request, stdin, p.stdout.Child, p.stderr.Child); err != nil {
		return err
	}
	// A file system that does not answer must not hold us, nor must what runs in
	// the container already: it may stop a child of its own user before that has
	// become its program, or hold a lease on the program.
	slow := time.NewTimer(startTimeout)
	defer slow.Stop()
	var late error
	for waiting := true; waiting; {
		select {
		case <-over:
			waiting = false
		case <-ctx.Done():
			c.awaitFork(p, over)
			late, waiting = context.Cause(ctx), false
		case <-slow.C:
			if c.forked(p) {
				late, waiting = errSlowStart, false
				break
			}
			// On a busy machine the first process has yet to get its turn.
			c.awaitFork(p, over)
			late = c.deleted()
			waiting = late == nil
			slow.Reset(startTimeout)
		}
	}
	c.receiveAll() // the end of who had the same number, or of the first process
	c.mu.Lock()
	c.learn(p)
	pid, failure, runs := p.pid, p.failure, p.pid != 0 && p.end == nil
	if runs {
		c.running[pid] = p
	}
	c.mu.Unlock()
	switch {
	case late != nil:
		if runs { // it may not lead a group yet
			c.signal(pid, executor.Kill)
			c.signal(-pid, executor.Kill)
		}
		if pid != 0 && c.deleted() == nil { // it may have become its program long ago
			if err := c.cgroup.KillDescent(p.id); err != nil {
				return fmt.Errorf("%w; %w", late, err)
			}
		}
		return late
	case failure != nil:
		return failure
	case pid == 0:
		select { // the kernel may close a dead process's pipe before its socket
		case <-c.lost:
		case <-time.After(deathTime):
		}
		return cmp.Or(c.usable(), errNotTaken)
	}
	return nil
}

// deathTime is how long a first process that has closed a pipe may take to close its
// socket, if it does so because it dies.
const deathTime = time.Second

var errNotTaken = errors.New("its first process could not take the request: it has too many descriptors open, or too little memory")

// awaitFork returns once it is known whom to kill, if anybody. The first process
// says so at once, or is dead. A container that is being deleted takes all with it.
func (c *container) awaitFork(p *process, over <-chan struct{}) {
	for !c.forked(p) && c.deleted() == nil {
		select {
		case <-over:
			return
		case <-time.After(time.Millisecond): // between two looks
		}
	}
}

// forked reports whether the first process has answered to a start.
func (c *container) forked(p *process) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.learn(p)
	return p.pid != 0 || p.failure != nil
}

// learn reads what there is of the answer to a start. The caller holds mu.
func (c *container) learn(p *process) {
	for {
		pid, err := p.answer.Next()
		switch {
		case err == nil:
			p.pid = pid
		case errors.As(err, new(*pid1.Failure)):
			p.failure = err
		default:
			return
		}
	}
}

// receive reads what the first process says. It reports whether more may come. It
// runs in the poller's goroutine and must not block.
func (c *container) receive() bool {
	_, open := c.receiveSome()
	return open
}

// receiveAll reads what the first process has said, which is at most what its socket
// holds.
func (c *container) receiveAll() {
	for range 16 {
		if all, _ := c.receiveSome(); all {
			return
		}
	}
}

// receiveSome reads a batch, so that a container in which processes end without a
// pause holds up no other. It reports whether that was all there was, and whether
// more may come.
func (c *container) receiveSome() (all, open bool) {
	c.receiving.Lock()
	defer c.receiving.Unlock()
	for range 64 {
		if c.closed {
			return true, false
		}
		m, err := c.conn.Receive()
		if err == unix.EAGAIN {
			return true, true
		}
		if err != nil {
			c.lose()
			return true, false
		}
		c.hear(m)
	}
	return false, !c.closed
}

func (c *container) hear(m pid1.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Event {
	case pid1.Ready:
		select {
		case <-c.ready:
		default:
			close(c.ready)
		}
	case pid1.Exited:
		p := c.running[m.PID]
		if p == nil {
			begun := c.begun()
			i := slices.IndexFunc(begun, func(p *process) bool { return p.pid == m.PID })
			if i < 0 {
				return // an orphan, which nobody waits for
			}
			p = begun[i]
		}
		delete(c.running, m.PID)
		e := executor.Exit{Status: m.Status.ExitStatus()}
		if m.Status.Signaled() {
			e = executor.Exit{Signal: int(m.Status.Signal())}
		}
		c.settle(p, e)
		c.finish(p)
	}
}

// begun are the processes that live and whose start is not over. The caller holds mu.
func (c *container) begun() (all []*process) {
	for p := range c.starting {
		if p.pid == 0 {
			c.learn(p)
		}
		if p.pid != 0 && p.end == nil && c.running[p.pid] != p {
			all = append(all, p)
		}
	}
	return all
}

// lose ends what ran when the first process died: the kernel has killed it.
func (c *container) lose() {
	select {
	case <-c.lost:
		return
	default:
		close(c.lost)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	all := slices.AppendSeq(c.begun(), maps.Values(c.running))
	clear(c.running)
	// If it was for lack of memory, it was for all of them.
	for _, p := range all {
		c.settle(p, executor.Exit{Signal: int(unix.SIGKILL)})
	}
	for _, p := range all {
		c.finish(p)
	}
}

// settle says how a process ended. The kernel counts whom it kills for want
// of memory and does not say which: a process that was killed, not by us, is
// taken for one of them, and one that failed otherwise may have lost a child.
func (c *container) settle(p *process, e executor.Exit) {
	if p.greedy && p.cause != "" && !e.Success() {
		e.Cause = p.cause
		p.end = &e
		return
	}
	e.OutOfMemory = !e.Success() && (p.greedy || !p.killed && c.cgroup.OOMKills()-p.oomBefore > c.victims-p.victims)
	p.end = &e
}

// finish is for a process whose end is settled.
func (c *container) finish(p *process) {
	if p.end.OutOfMemory && !p.greedy && p.end.Signal == int(unix.SIGKILL) {
		c.victims++
	}
	c.report(p)
}

// report calls Exited once the process has both started and ended.
func (c *container) report(p *process) {
	if !p.started || p.end == nil {
		return
	}
	e := *p.end
	c.draining.Add(1)
	go func() {
		p.stdout.Drain()
		p.stderr.Drain()
		c.draining.Done()
		if p.exited != nil {
			p.exited(e)
		}
	}()
}

// Signal implements [executor.Process].
func (p *process) Signal(s executor.Signal) error {
	c := p.c
	if c.enter() != nil { // all in it die
		return nil
	}
	defer c.life.RUnlock()
	c.mu.Lock()
	p.killed = p.killed || s == executor.Kill
	over := p.end != nil
	pid := p.pid
	c.mu.Unlock()
	if !over { // else the number may be somebody else's
		if err := c.signal(-pid, s); err != nil {
			return err
		}
	}
	if s != executor.Kill {
		return nil
	}
	if err := c.cgroup.KillDescent(p.id); err != nil {
		return fmt.Errorf("container %q: %w", c.guid, err)
	}
	return nil
}

// finished reports whether the process is gone and nobody is left who could
// write its output. The caller holds container.mu.
func (p *process) finished() bool {
	return p.end != nil && p.stdout.Done() && p.stderr.Done()
}

// close returns when the writers of the process are no longer used.
func (p *process) close() {
	p.stdout.Close()
	p.stderr.Close()
}

// request looks up all that a process needs.
func (c *container) request(spec executor.ProcessSpec) (pid1.Request, error) {
	user, err := c.user(spec.User)
	if err != nil {
		return pid1.Request{}, err
	}
	r := pid1.Request{
		Args: append([]string{spec.Path}, spec.Args...),
		Dir:  spec.Dir, UID: user.UID, GID: user.GID, Groups: user.Groups,
		Limits:           limits(spec.Limits),
		KeepCapabilities: c.spec.Privileged,
	}
	if !c.spec.Privileged {
		r.Filter = seccomp.Filter()
	}
	if r.Dir == "" {
		r.Dir = "/"
		if c.isDir(user.Home) {
			r.Dir = user.Home
		}
	}
	at := map[string]int{}
	add := func(name, value string) {
		if i, twice := at[name]; twice {
			r.Env[i] = name + "=" + value
			return
		}
		at[name] = len(r.Env)
		r.Env = append(r.Env, name+"="+value)
	}
	searched := defaultPath
	add("PATH", searched)
	add("HOME", user.Home)
	for _, v := range spec.Env {
		add(v.Name, v.Value)
		if v.Name == "PATH" {
			searched = v.Value
		}
	}
	if strings.Contains(spec.Path, "/") {
		r.Paths = []string{spec.Path}
		return r, nil
	}
	for dir := range strings.SplitSeq(searched, ":") {
		if path.IsAbs(dir) {
			r.Paths = append(r.Paths, path.Join(dir, spec.Path))
		}
	}
	if spec.Path == "" || len(r.Paths) == 0 {
		return r, &executor.BackendError{Kind: executor.ErrNoCommand, GUID: c.guid, Detail: fmt.Sprintf("%q is not in PATH %q", spec.Path, searched)}
	}
	return r, nil
}

// A foundUser is the user that was last looked for, and found, in a container. Most
// containers have one, and each monitor starts a process of it.
type foundUser struct {
	name  string
	files [2]userFile
	user  ids.User
}

// A userFile identifies the content of /etc/passwd or /etc/group, if it is there.
type userFile struct {
	device, inode    uint64
	size             int64
	modified, change unix.Timespec
}

// settled is how old the last change of a file must be. A younger one may be
// followed by one with the same time.
const settled = time.Second

// user finds one of the container's users; see [ids.FindUser]. It reads the files
// again only if they have changed.
func (c *container) user(name string) (ids.User, error) {
	found := foundUser{name: name}
	keep := true
	for i, path := range []string{ids.PasswdFile, ids.GroupFile} {
		s, err := rootfs.Stat(c.root, path)
		if err != nil {
			keep = keep && errors.Is(err, fs.ErrNotExist)
			continue
		}
		found.files[i] = userFile{uint64(s.Dev), s.Ino, s.Size, s.Mtim, s.Ctim}
		keep = keep && time.Since(time.Unix(s.Ctim.Unix())) > settled
	}
	c.mu.Lock()
	last := c.lastUser
	c.mu.Unlock()
	if keep && last != nil && last.name == name && last.files == found.files {
		return last.user, nil
	}
	var err error
	found.user, err = ids.FindUser(c.guid, name, c.ids, func(path string) (*os.File, error) { return rootfs.Open(c.root, path) })
	if keep && err == nil {
		c.mu.Lock()
		c.lastUser = &found
		c.mu.Unlock()
	}
	return found.user, err
}

func (c *container) isDir(name string) bool {
	s, err := rootfs.Stat(c.root, name)
	return err == nil && s.Mode&unix.S_IFMT == unix.S_IFDIR
}

// limits cuts what is asked for to what the daemon itself may have: without
// CAP_SYS_RESOURCE nobody can raise it.
func limits(l executor.ResourceLimits) []pid1.Limit {
	nofile := uint64(executor.DefaultNofile)
	if l.Nofile != nil {
		nofile = *l.Nofile
	}
	all := []pid1.Limit{clamp(unix.RLIMIT_NOFILE, nofile), clamp(unix.RLIMIT_CORE, seccomp.NoCore)}
	if l.Nproc != nil {
		all = append(all, clamp(unix.RLIMIT_NPROC, *l.Nproc))
	}
	return all
}

func clamp(resource int, want uint64) pid1.Limit {
	var own unix.Rlimit
	if unix.Getrlimit(resource, &own) == nil {
		want = min(want, own.Max)
	}
	return pid1.Limit{Resource: resource, Soft: want, Hard: want}
}

// errStart names why a program could not be executed.
func (c *container) errStart(spec executor.ProcessSpec, err error) error {
	var failure *pid1.Failure
	typed := &executor.BackendError{GUID: c.guid, Cause: err}
	switch {
	case errors.As(err, new(*executor.BackendError)):
		return err
	case c.gone.Load():
		return c.errGone()
	case errors.As(err, &failure) && failure.Stage == pid1.StageExec:
		typed.Kind, typed.Detail = executor.ErrNoCommand, spec.Path
		return typed
	case errors.As(err, &failure) && failure.Stage == pid1.StageDir:
		typed.Kind, typed.Detail = executor.ErrNoFile, "the working directory "+spec.Dir
		return typed
	case errors.As(err, &failure) && *failure == pid1.Failure{Stage: pid1.StageFork, Errno: unix.EAGAIN}:
		limit := *c.backend.limits(c.spec).PidsLimit
		now := c.cgroup.PIDs()
		if now >= 0 && now < limit { // the kernel says the same of limits of the host
			return fmt.Errorf("container %q: start %s: %w; %d of its %d processes and threads run, so a limit of the host is reached: see TasksMax of the daemon's unit, kernel.threads-max and kernel.pid_max",
				c.guid, spec.Path, err, now-1, limit-1) // without the first one
		}
		typed.Kind = executor.ErrProcesses
		typed.Detail = fmt.Sprintf("%d processes and threads may run in it at a time; end some of them, or raise max_pids", limit-1)
		return typed
	case errors.Is(err, unix.EPIPE), errors.Is(err, unix.ECONNRESET):
		return c.errDied()
	}
	return fmt.Errorf("container %q: start %s: %w", c.guid, spec.Path, err)
}
