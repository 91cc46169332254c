package simulation

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/storage/sqlstore"
)

// A medium is where the records of a world are kept: in memory or in what a
// subject has brought, in one store that all share, or in a SQLite file, which
// each process opens for itself.
type medium struct {
	world  *World
	memory *memstore.Store
	guest  storage.Store // is the subject's; without both there is a file
	dir    string        // of the file
	opened []*access
}

// An access is a process's way to the records. What it leads to is replaced when
// the store falls back.
type access struct {
	storage.Store
	close func() error
}

func newMedium(w *World, h History) (*medium, error) {
	if s := h.Subject; s != nil && s.Store != nil {
		guest, err := s.Store(w.Clock.Now)
		return &medium{world: w, guest: guest}, err
	}
	if !h.SQLite {
		return &medium{world: w, memory: memstore.New(&memstore.Options{Now: w.Clock.Now})}, nil
	}
	dir, err := os.MkdirTemp("", "diego-simulation")
	return &medium{world: w, dir: dir}, err
}

func (m *medium) file() string { return filepath.Join(m.dir, "diego.db") }

// open gives a process access to the records.
func (m *medium) open() (*access, error) {
	a := &access{}
	if err := m.connect(a); err != nil {
		return nil, err
	}
	m.opened = append(m.opened, a)
	return a, nil
}

func (m *medium) connect(a *access) error {
	shared := m.guest
	if m.memory != nil {
		shared = m.memory
	}
	if shared != nil {
		a.Store, a.close = shared, func() error { return nil }
		return nil
	}
	s, err := sqlstore.Open(context.Background(), "sqlite:"+m.file(), &sqlstore.Options{Now: m.world.Clock.Now})
	if err == nil {
		a.Store, a.close = s, s.Close
	}
	return err
}

// reopen is what a process does that starts anew.
func (m *medium) reopen(a *access) error {
	if err := a.close(); err != nil {
		return err
	}
	return m.connect(a)
}

// save notes what there is; fallBack puts it back, while every process goes on
// with its access.
func (m *medium) save() (fallBack func(context.Context) error, err error) {
	if m.memory != nil {
		back := m.memory.Save()
		return func(ctx context.Context) error {
			back()
			return m.memory.Restored(ctx)
		}, nil
	}
	saved := map[string][]byte{} // nobody writes meanwhile, so the files fit together
	for _, name := range []string{m.file(), m.file() + "-wal"} {
		data, err := os.ReadFile(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		saved[name] = data
	}
	return func(context.Context) error {
		for _, a := range m.opened {
			if err := a.close(); err != nil {
				return err
			}
		}
		if err := os.Remove(m.file() + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		for name, data := range saved {
			if err := os.WriteFile(name, data, 0o600); err != nil {
				return err
			}
		}
		for _, a := range m.opened {
			if err := m.connect(a); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// done ends all access.
func (m *medium) done() error {
	var err error
	for _, a := range m.opened {
		err = errors.Join(err, a.close())
	}
	if m.dir != "" {
		err = errors.Join(err, os.RemoveAll(m.dir))
	}
	return err
}
