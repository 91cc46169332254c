package storagetest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/storage/storagetest"
)

// A journal is the smallest store on disk: it appends each commit to a file
// and reads the file again when it is opened. It keeps what RunCrash writes
// and nothing else.
type journal struct {
	*memstore.Store
	mu     sync.Mutex
	file   *os.File
	buffer *bufio.Writer // of a journal that is late; nil otherwise
}

type entry struct {
	Writes  []lrp.Write
	Domains []storage.DomainWrite
	Events  [][]byte
}

func openJournal(dir string) (*journal, error) {
	name := filepath.Join(dir, "journal")
	data, err := os.ReadFile(name)
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	j := &journal{Store: memstore.New(&memstore.Options{Events: 1_000_000})}
	whole := bytes.LastIndexByte(data, '\n') + 1 // the rest is half a commit
	for line := range bytes.Lines(data[:whole]) {
		var e entry
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		b := storage.Batch{ActualLRPs: e.Writes, Domains: e.Domains}
		for _, data := range e.Events {
			event, err := storage.DecodeEvent(data)
			if err != nil {
				return nil, err
			}
			b.Events = append(b.Events, event)
		}
		if _, err := j.Store.Commit(context.Background(), b); err != nil {
			return nil, err
		}
	}
	if j.file, err = os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		return nil, err
	}
	return j, j.file.Truncate(int64(whole))
}

func (j *journal) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	cursor, err := j.Store.Commit(ctx, b)
	if err != nil {
		return 0, err
	}
	e := entry{Writes: b.ActualLRPs, Domains: b.Domains}
	for i := range b.Events {
		data, err := storage.EncodeEvent(&b.Events[i])
		if err != nil {
			return 0, err
		}
		e.Events = append(e.Events, data)
	}
	data, err := json.Marshal(e)
	if err != nil {
		return 0, err
	}
	data = append(data, '\n')
	if j.buffer != nil {
		_, err = j.buffer.Write(data)
	} else {
		_, err = j.file.Write(data)
	}
	return cursor, err
}

func (j *journal) Close() error {
	j.Store.Close()
	return j.file.Close()
}

func TestCrash(t *testing.T) {
	storagetest.RunCrash(t, storagetest.Crash{
		Rounds: 10, Seed: 1,
		Open: func(dir string) (storage.Store, error) { return openJournal(dir) },
	})
}
