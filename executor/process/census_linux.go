package process

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// censuses are of all Backends of this process: they look at the same /proc.
var censuses = looks[*census]{take: newLooker("/proc", lookPatience).take}

// A census is what one look at all processes of the host has found. It is not
// changed any more.
type census struct {
	all      []member
	marked   map[string][]int // positions in all, by the directory in their environment
	sessions map[int][]int
	children map[int][]int // by the number of their parent
	numbers  map[int]int   // position of each process
	read     map[int]environment
	unread   []*stuckFile
	// steady: all was read, and no process began meanwhile. One that did may have been
	// missed, with the one that started it.
	steady bool
}

// An environment is what a census has read of one, by the number of its process.
type environment struct {
	started string // as in leader
	program string // as in member
	marks   []string
}

// marksOf are the marks of a process whose environment was read, and which has not
// executed another program since.
func (c *census) marksOf(m member) (marks []string, known bool) {
	if c == nil || m.program == "" {
		return nil, false
	}
	e, known := c.read[m.pid]
	return e.marks, known && e.started == m.started && e.program == m.program
}

// A member is a process of a container, as /proc shows it.
type member struct {
	pid, parent, group, session int
	zombie                      bool
	program                     string // where it and its environment begin and end in memory; "" if that is hidden
	headless                    bool   // its main thread has ended, and others go on
	started                     string // as in leader
	cpu                         time.Duration
	residentPages               int64
}

// takeCensus reads everything below a directory like /proc. An error means that
// there may be processes that it has not seen. before is the last census, or nil: what
// it has read of environments is not read again, because that takes most of the time.
func takeCensus(proc string, before *census, environs *environs) (*census, error) {
	dir, err := os.Open(proc)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	c := &census{marked: make(map[string][]int), sessions: make(map[int][]int), children: make(map[int][]int), numbers: make(map[int]int), read: make(map[int]environment)}
	newest := newestPID(proc)
	// Few names at a time, and the processes at once: one that forks and ends all the
	// time has another number by the time in which all names are read.
	var entries [fewEntries]byte
	var names []string
	for {
		if len(names) == 0 {
			n, err := syscall.ReadDirent(int(dir.Fd()), entries[:])
			if err == syscall.EINTR {
				continue
			}
			if err != nil {
				return nil, &fs.PathError{Op: "readdirent", Path: proc, Err: err}
			}
			if n == 0 {
				c.unread = environs.unread
				c.steady = len(c.unread) == 0 && newest != "" && newest == newestPID(proc)
				return c, nil
			}
			_, _, names = syscall.ParseDirent(entries[:n], -1, names)
			continue
		}
		name := names[0]
		names = names[1:]
		pid, err := strconv.Atoi(name)
		if err != nil || pid == os.Getpid() {
			continue
		}
		m, err := readMember(proc, pid)
		if hidden(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		dirs, known := before.marksOf(m)
		if !known {
			if !m.zombie { // which has none
				dirs, err = environs.marks(proc+"/"+name+"/environ", func(buffer *bytes.Buffer) ([]string, error) {
					if m.headless {
						return readHeadless(buffer, proc+"/"+name+"/task")
					}
					return read(buffer, proc+"/"+name+"/environ")
				})
			}
			if err != nil && !hidden(err) {
				return nil, err
			}
			known = err == nil
		}
		if known {
			c.read[m.pid] = environment{m.started, m.program, dirs}
		}
		at := len(c.all)
		c.all = append(c.all, m)
		c.numbers[m.pid] = at
		c.sessions[m.session] = append(c.sessions[m.session], at)
		c.children[m.parent] = append(c.children[m.parent], at)
		for _, dir := range dirs {
			c.marked[dir] = append(c.marked[dir], at)
		}
	}
}

// newestPID is the number that was given to a process or thread last, or "".
func newestPID(proc string) string {
	text, _ := os.ReadFile(proc + "/loadavg")
	fields := strings.Fields(string(text))
	if len(fields) < 5 || fields[4] == "0" { // as where something else than Linux says it
		return ""
	}
	return fields[4]
}

// fewEntries has room for the longest name of a file, or for a dozen numbers.
const fewEntries = 288

// maxEnviron is more than execve accepts. A process may say later, by prctl, that its
// environment is any part of its address space, however large.
const maxEnviron = 8 << 20

// maxMarks is how many directories one environment may name. The backend sets one.
const maxMarks = 16

// maxPath is how long the name of a file may be.
const maxPath = 4096

// readHeadless reads the marks of a process whose main thread has ended, as one of the
// other threads shows them.
func readHeadless(buffer *bytes.Buffer, tasks string) ([]string, error) {
	threads, err := os.ReadDir(tasks)
	if err != nil {
		return nil, err
	}
	for _, thread := range threads {
		dirs, err := read(buffer, tasks+"/"+thread.Name()+"/environ")
		if len(dirs) > 0 || err != nil && !hidden(err) {
			return dirs, err
		}
	}
	return nil, nil
}

// read returns the marks at the beginning of a file.
func read(buffer *bytes.Buffer, name string) ([]string, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	buffer.Reset()
	_, err = buffer.ReadFrom(io.LimitReader(f, maxEnviron))
	return marks(buffer.Bytes()), err
}

// hidden reports whether a file in /proc could not be read because its process
// has ended or is another user's, or because reading it does not return. Such a
// process of a container is known by its session or its parents, unless /proc hides
// all of it (hidepid).
func hidden(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) || errors.Is(err, errStuck) || errors.Is(err, fs.ErrPermission)
}

// marks are the container directories in an environment.
func marks(environ []byte) (dirs []string) {
	const assignment = containerDirVar + "="
	for len(environ) > 0 && len(dirs) < maxMarks {
		var variable []byte
		variable, environ, _ = bytes.Cut(environ, []byte{0})
		if dir, ok := bytes.CutPrefix(variable, []byte(assignment)); ok && len(dir) <= maxPath {
			dirs = append(dirs, string(dir))
		}
	}
	return dirs
}

// of returns the living processes of the container with a directory. A process
// belongs to the container if it has the directory in its environment, or shares
// a session with one that has, with one of the leaders, or with one that was
// found before. The children of all these belong to it too.
func (c *census) of(dir string, leaders, before []leader) (found []member) {
	seen := make(map[int]bool)
	var queue []int
	add := func(positions []int) {
		for _, at := range positions {
			if !seen[at] {
				seen[at] = true
				queue = append(queue, at)
			}
		}
	}
	for _, at := range c.marked[dir] {
		add(c.sessions[c.all[at].session])
	}
	for _, l := range leaders {
		session := c.sessions[l.pid]
		// By now the leader may be gone, and its number a stranger's.
		if !slices.ContainsFunc(session, func(at int) bool { m := c.all[at]; return m.pid == l.pid && m.started != l.started }) {
			add(session)
		}
	}
	for _, l := range before {
		if at, ok := c.numbers[l.pid]; ok && c.all[at].started == l.started {
			add(c.sessions[c.all[at].session])
		}
	}
	for ; len(queue) > 0; queue = queue[1:] {
		m := c.all[queue[0]]
		add(c.children[m.pid])
		if !m.zombie {
			found = append(found, m)
		}
	}
	return found
}

// members are the living processes of the container, as the next census shows
// them, and whether these are surely all. It remembers them: one that has cleared its
// environment belongs to the container also after its parents have ended.
func (c *container) members(ctx context.Context, leaders []leader) (found []member, all bool, err error) {
	now, err := censuses.join(ctx)
	if err != nil {
		return nil, false, fmt.Errorf("look for its processes: %w", err)
	}
	now.tell(c.log)
	c.mu.Lock()
	defer c.mu.Unlock()
	found = now.of(c.dir, leaders, c.found)
	c.found = make([]leader, len(found))
	for i, m := range found {
		c.found[i] = leader{m.pid, m.started}
	}
	return found, now.steady, nil
}

// startTime is the started of a process that is not reaped yet.
func startTime(pid int) string {
	m, _ := readMember("/proc", pid)
	return m.started
}

// clockTick is the unit of processor time in /proc; Linux shows it as 1/100 s
// on every architecture that Go knows.
const clockTick = 10 * time.Millisecond

func readMember(proc string, pid int) (member, error) {
	name := proc + "/" + strconv.Itoa(pid) + "/stat"
	text, err := os.ReadFile(name)
	if err != nil {
		return member{}, err
	}
	// The name is in parentheses and may contain anything.
	_, rest, ok := strings.Cut(string(text[bytes.LastIndexByte(text, ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 22 {
		return member{}, fmt.Errorf("%s is not what Linux writes: %q", name, text)
	}
	n := func(i int) int64 {
		v, _ := strconv.ParseInt(fields[i], 10, 64)
		return v
	}
	dead := fields[0] == "Z" // or only its main thread is
	headless := dead && n(17) > 1
	// An exec loads a program at a place that Linux draws by lot. Where it does not
	// draw lots, another program or environment has another size.
	program := ""
	if len(fields) > 48 && fields[47] != "0" {
		program = strings.Join(append(fields[23:26:26], fields[47:49]...), " ")
	}
	return member{
		program: program, headless: headless,
		pid: pid, parent: int(n(1)), group: int(n(2)), session: int(n(3)), zombie: dead && !headless,
		started: fields[19], cpu: time.Duration(n(11)+n(12)) * clockTick, residentPages: n(21),
	}, nil
}
