package manager

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/diegosdk/diego/executor"
)

// ErrTooLarge: a file has more than MaxResultBytes.
var ErrTooLarge = errors.New("file too large")

// ReadFile returns the content of a file of a container that has been made and
// is not deleted yet, such as the result of a task. It waits for the backend.
// A missing file is an executor.ErrNoFile, one of more than MaxResultBytes an
// ErrTooLarge.
func (m *Manager) ReadFile(ctx context.Context, guid, path string) ([]byte, error) {
	c, ok := m.Get(guid)
	if !ok {
		return nil, &GUIDError{guid, ErrNotFound}
	}
	user := ""
	if c.RunInfo != nil {
		user = c.RunInfo.LegacyDownloadUser
		if run := mainRun(c.RunInfo.Action); user == "" && run != nil {
			user = run.User
		}
	}
	stream, err := m.options.Backend.StreamOut(ctx, guid, path, user)
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	in := tar.NewReader(stream)
	h, err := in.Next()
	if err != nil {
		return nil, fmt.Errorf("container %q: read %s: %w", guid, path, err)
	}
	if h.Typeflag != tar.TypeReg {
		return nil, &executor.BackendError{Kind: executor.ErrNoFile, GUID: guid, Detail: path + " is not a file"}
	}
	if h.Size > MaxResultBytes {
		return nil, fmt.Errorf("container %q: %w: %s has %d bytes and may have %d", guid, ErrTooLarge, path, h.Size, MaxResultBytes)
	}
	content, err := io.ReadAll(in)
	if err != nil {
		return nil, fmt.Errorf("container %q: read %s: %w", guid, path, err)
	}
	return content, nil
}

// Usage measures what a container uses now. It waits for the backend.
func (m *Manager) Usage(ctx context.Context, guid string) (executor.Usage, error) {
	if _, ok := m.Get(guid); !ok {
		return executor.Usage{}, &GUIDError{guid, ErrNotFound}
	}
	return m.options.Backend.Usage(ctx, guid)
}
