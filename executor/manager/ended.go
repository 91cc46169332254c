package manager

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/diegosdk/diego/executor/internal/logfile"
)

var streams = [...]Stream{Stdout, Stderr, Health}

// ended has the last output of containers that are gone: a directory for each,
// of which the newest stay. It is on the disk alone, so the next manager with
// the same directory finds it.
type ended struct {
	dir   string
	limit int   // containers
	bytes int64 // of each stream
	log   *slog.Logger

	mu    sync.Mutex
	guids []string // in the order in which they ended
}

// openEnded finds what earlier managers have kept, and takes the logs of
// containers whose manager was killed.
func openEnded(o *Options) (*ended, error) {
	e := &ended{dir: filepath.Join(o.Dir, endedLogs), limit: max(o.EndedLogs, 0), bytes: o.EndedLogBytes, log: o.Logger}
	if err := os.MkdirAll(e.dir, 0o700); err != nil {
		return nil, err
	}
	var err error
	if e.guids, err = byAge(e.dir); err != nil {
		return nil, err
	}
	live := filepath.Join(o.Dir, liveLogs)
	cut, err := byAge(live)
	if err != nil {
		return nil, err
	}
	for _, guid := range cut {
		var list []*logfile.Log
		for _, s := range streams {
			log, err := logfile.Open(filepath.Join(live, guid), string(s))
			if err != nil {
				return nil, err
			}
			list = append(list, log)
		}
		e.keep(guid, list, ownerIn(filepath.Join(live, guid)))
	}
	e.prune()
	return e, os.RemoveAll(live)
}

// byAge are the directories in dir, the oldest first; none if there is no dir.
func byAge(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if e.IsDir() {
			list = append(list, info)
		}
	}
	slices.SortStableFunc(list, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	guids := make([]string, len(list))
	for i, info := range list {
		guids[i] = info.Name()
	}
	return guids, nil
}

// keep takes the end of the logs of a container, which are closed. One that has
// written nothing takes no place. What a full disk does not take is lost, with a
// line of the log: no container stays because of it.
func (e *ended) keep(guid string, list []*logfile.Log, owner LogOwner) {
	wrote := func(l *logfile.Log) bool { return l.Size() > 0 }
	if e.limit == 0 || !slices.ContainsFunc(list, wrote) {
		return
	}
	dir := filepath.Join(e.dir, guid)
	err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700))
	for _, l := range list {
		if err == nil {
			err = l.Keep(dir, e.bytes)
		}
	}
	if err == nil {
		err = owner.write(dir)
	}
	if err != nil {
		e.log.Warn("the last output of a container could not be kept", "guid", guid, "error", errors.Join(err, os.RemoveAll(dir)))
		return
	}
	e.mu.Lock()
	e.guids = append(slices.DeleteFunc(e.guids, func(g string) bool { return g == guid }), guid)
	e.mu.Unlock()
	e.prune()
}

// prune removes the oldest beyond the limit.
func (e *ended) prune() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for len(e.guids) > e.limit {
		if err := os.RemoveAll(filepath.Join(e.dir, e.guids[0])); err != nil {
			e.log.Warn("old output of a container could not be removed", "guid", e.guids[0], "error", err)
		}
		e.guids = e.guids[1:]
	}
}

// ownerFile says whose output lies beside it.
const ownerFile = "owner.json"

func (o LogOwner) write(dir string) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, ownerFile), text, 0o600)
}

// ownerIn is whose output lies in a directory. It is empty if an earlier release
// wrote it, or if the host ended while the file was written.
func ownerIn(dir string) (o LogOwner) {
	if text, err := os.ReadFile(filepath.Join(dir, ownerFile)); err != nil || json.Unmarshal(text, &o) != nil {
		return LogOwner{}
	}
	return o
}

// owner is whose output is kept of a container that is gone; false if none is.
func (e *ended) owner(guid string) (LogOwner, bool) {
	e.mu.Lock()
	kept := slices.Contains(e.guids, guid)
	e.mu.Unlock()
	if !kept {
		return LogOwner{}, false
	}
	return ownerIn(filepath.Join(e.dir, guid)), true
}

// read is a stream of a container that is gone and whose output it is, nil if
// nothing is kept of it.
func (e *ended) read(guid string, s Stream) (*logfile.Log, LogOwner) {
	owner, kept := e.owner(guid)
	if !kept || !slices.Contains(streams[:], s) {
		return nil, LogOwner{}
	}
	l, err := logfile.Open(filepath.Join(e.dir, guid), string(s))
	if err != nil {
		return nil, LogOwner{}
	}
	return l, owner
}
