package scripted

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
)

// Path is the path of a process whose arguments are statements.
const Path = "/do"

// A process carries out its statements one at a time.
type process struct {
	backend    *Backend
	container  *container
	spec       executor.ProcessSpec
	env        map[string]string
	statements []statement
	onTerm     []statement
	ignoreTerm bool
	due        time.Time
	sequence   int64
	forever    bool           // it waits for nothing but signals
	listens    map[uint16]int // HTTP status by port, 0 for plain TCP
	ended      bool
}

type statement struct{ verb, rest string }

var verbs = []string{"print", "warn", "flood", "wait", "exit", "die", "oom", "listen", "serve", "close", "write",
	"remove", "need", "cat", "orphan", "ignore", "on"}

func parse(lines []string) (now, onTerm []statement, err error) {
	into := &now
	for _, line := range lines {
		verb, rest, _ := strings.Cut(line, " ")
		if !slices.Contains(verbs, verb) {
			return nil, nil, fmt.Errorf("scripted: %q is not a statement", line)
		}
		if verb == "on" {
			into = &onTerm
			continue
		}
		*into = append(*into, statement{verb, rest})
	}
	return now, onTerm, nil
}

// Start implements [executor.ContainerBackend].
func (b *Backend) Start(ctx context.Context, guid string, spec executor.ProcessSpec) (executor.Process, error) {
	c, err := b.begin(Start, guid)
	defer b.end()
	if err := errors.Join(err, ctx.Err()); err != nil {
		return nil, err
	}
	lines, known := b.options.Programs[spec.Path]
	switch {
	case known:
	case spec.Path == Path:
		lines = spec.Args
	case strings.HasPrefix(spec.Path, "/no/") || !strings.Contains(spec.Path, "/"):
		return nil, &executor.BackendError{Kind: executor.ErrNoCommand, GUID: guid, Detail: spec.Path}
	default:
		lines = []string{"wait forever"}
	}
	if strings.HasPrefix(spec.Dir, "/no/") {
		return nil, &executor.BackendError{Kind: executor.ErrNoFile, GUID: guid, Detail: "the working directory " + spec.Dir}
	}
	p := &process{backend: b, container: c, spec: spec, env: make(map[string]string), listens: make(map[uint16]int)}
	for _, v := range spec.Env {
		p.env[v.Name] = v.Value
	}
	if p.statements, p.onTerm, err = parse(lines); err != nil {
		return nil, err
	}
	p.schedule(0)
	c.processes = append(c.processes, p)
	return p, nil
}

// Signal implements [executor.Process].
func (p *process) Signal(s executor.Signal) error {
	p.backend.mu.Lock()
	defer p.backend.end()
	p.signal(s)
	return nil
}

func (p *process) signal(s executor.Signal) {
	switch {
	case p.ended:
	case s == executor.Kill:
		p.end(executor.Exit{Signal: 9})
	case p.onTerm != nil:
		p.statements, p.onTerm, p.ignoreTerm = p.onTerm, nil, true
		p.schedule(0)
	case !p.ignoreTerm && !p.startsIgnoring():
		p.end(executor.Exit{Signal: 15})
	}
}

// startsIgnoring reports whether the next statement ignores TERM. Then a process
// that has just been started ignores it already.
func (p *process) startsIgnoring() bool {
	return len(p.statements) > 0 && p.statements[0].verb == "ignore"
}

func (p *process) schedule(after time.Duration) {
	p.forever = false
	p.backend.sequence++
	p.due, p.sequence = p.backend.time().Add(after), p.backend.sequence
}

// end ends the process; Exited is called once the lock is free.
func (p *process) end(e executor.Exit) {
	p.ended = true
	p.container.processes = slices.DeleteFunc(p.container.processes, func(o *process) bool { return o == p })
	p.container.spent += time.Millisecond
	if exited := p.spec.Exited; exited != nil {
		p.backend.calls = append(p.backend.calls, func() { exited(e) })
	}
}

// Step implements [executor.Stepper].
func (b *Backend) Step(now time.Time) {
	b.mu.Lock()
	if now.After(b.now) {
		b.now = now
	}
	// What processes start at now is due at now too: the bound keeps one that
	// never waits from going on for ever.
	for range stepLimit {
		p := b.next()
		if p == nil || p.due.After(now) {
			break
		}
		p.step()
	}
	b.end()
}

const stepLimit = 1_000_000

// Next implements [executor.Stepper].
func (b *Backend) Next() (time.Time, bool) {
	b.mu.Lock()
	defer b.end()
	p := b.next()
	if p == nil {
		return time.Time{}, false
	}
	return p.due, true
}

// next is the process that is due first.
func (b *Backend) next() *process {
	var first *process
	for _, c := range b.containers { // the earliest of all, in any order
		for _, p := range c.processes {
			if !p.forever && (first == nil || p.due.Before(first.due) || p.due.Equal(first.due) && p.sequence < first.sequence) {
				first = p
			}
		}
	}
	return first
}

// step carries out statements until the process waits or ends.
func (p *process) step() {
	for len(p.statements) > 0 {
		s := p.statements[0]
		p.statements = p.statements[1:]
		if p.do(s.verb, os.Expand(s.rest, func(name string) string { return p.env[name] })) {
			return
		}
	}
	p.end(executor.Exit{})
}

// do carries out one statement and reports whether the process now waits or
// has ended.
func (p *process) do(verb, rest string) bool {
	c := p.container
	first, second, _ := strings.Cut(rest, " ")
	number := func(text string) int { n, _ := strconv.Atoi(text); return n }
	switch verb {
	case "print":
		p.write(false, rest+"\n")
	case "warn":
		p.write(true, rest+"\n")
	case "flood":
		block := strings.Repeat("x", 1<<16)
		for left := number(rest); left > 0; left -= len(block) {
			p.write(false, block[:min(left, len(block))])
		}
	case "wait":
		if d, err := time.ParseDuration(rest); err == nil {
			p.schedule(d)
		} else {
			p.forever = true
		}
		return true
	case "exit":
		p.end(executor.Exit{Status: number(rest)})
		return true
	case "die":
		p.end(executor.Exit{Signal: number(rest)})
		return true
	case "oom":
		p.end(executor.Exit{Signal: 9, OutOfMemory: true})
		return true
	case "listen", "serve":
		p.listens[uint16(number(first))] = number(second)
	case "close":
		delete(p.listens, uint16(number(first)))
	case "write":
		c.files[clean(p.spec.Dir, first)] = second
	case "remove":
		delete(c.files, clean(p.spec.Dir, rest))
	case "need":
		if _, ok := c.read(clean(p.spec.Dir, rest)); !ok {
			p.end(executor.Exit{Status: 1})
			return true
		}
	case "cat":
		for _, name := range strings.Fields(rest) {
			content, _ := c.read(clean(p.spec.Dir, name))
			p.write(false, content)
		}
	case "orphan":
		c.orphans++
	case "ignore":
		p.ignoreTerm = true
	}
	return false
}

func (p *process) write(stderr bool, text string) {
	w := p.spec.Stdout
	if stderr {
		w = p.spec.Stderr
	}
	if w != nil {
		w.Write([]byte(text))
	}
}
