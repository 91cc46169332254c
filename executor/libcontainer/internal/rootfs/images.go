//go:build linux && cgo && (amd64 || arm64)

package rootfs

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/tenant"
	"github.com/diegosdk/diego/executor/libcontainer/internal/ids"
)

// images finds and unpacks root file systems.
//
//	host:            the host's programs and libraries, read-only; see hostImage
//	preloaded:NAME   what Options.Preloaded says
//	dir:///path      a directory
//	tar:///path      a tar archive, also gzipped
//	oci:///path#REF  an OCI image layout: the image named REF, or the only one
type images struct {
	dir         string // of this boot, with a directory for each; made with the first
	allowedDirs []string
	preloaded   map[string]string
	trash       tenant.Trash

	mu   sync.Mutex
	busy map[string]*unpacking

	view hostView
}

// An image is what the containers of a root file system share.
type image struct {
	dir  string // never written to
	host bool   // whether directories of the host appear in it
}

// find returns an image, which is unpacked the first time that it is needed.
func (s *images) find(ctx context.Context, guid, rootFS string) (image, error) {
	return s.resolve(ctx, guid, rootFS, false)
}

func (s *images) resolve(ctx context.Context, guid, rootFS string, trusted bool) (image, error) {
	scheme, rest, ok := strings.Cut(rootFS, ":")
	if !ok {
		return image{}, errNoRootFS(guid, rootFS, "it is no URL; use host:, preloaded:NAME, dir:///path, tar:///path or oci:///path", nil)
	}
	switch scheme {
	case "host":
		i, err := s.unpacked(ctx, "host", s.hostImage)
		if err != nil {
			return image{}, errNoRootFS(guid, rootFS, "the host's directories cannot be shown", err)
		}
		i.host = true
		return i, nil
	case "preloaded":
		target, known := s.preloaded[rest]
		if !known || strings.HasPrefix(target, "preloaded:") {
			return image{}, errNoRootFS(guid, rootFS, "Options.Preloaded does not name it", nil)
		}
		return s.resolve(ctx, guid, target, true)
	case "dir", "tar", "oci":
	default:
		return image{}, &executor.BackendError{Kind: executor.ErrUnsupported, GUID: guid,
			Detail: fmt.Sprintf("root file system %q: there are host:, preloaded:NAME, dir:///path, tar:///path and oci:///path", rootFS)}
	}
	u, err := url.Parse(rootFS)
	if err != nil || u.Host != "" || !filepath.IsAbs(u.Path) {
		return image{}, errNoRootFS(guid, rootFS, "it takes an absolute path, as in "+scheme+":///path", err)
	}
	path, err := filepath.EvalSymlinks(u.Path)
	if err != nil {
		return image{}, errNoRootFS(guid, rootFS, "it is not there", err)
	}
	if !trusted && !s.allowed(path) {
		return image{}, errNoRootFS(guid, rootFS, "it does not lie below Options.ImageDirs", nil)
	}
	info, err := os.Stat(path)
	if err != nil || info.IsDir() == (scheme == "tar") {
		return image{}, errNoRootFS(guid, rootFS, "it is of another kind than its scheme says", err)
	}
	var i image
	switch scheme {
	case "dir":
		i = image{dir: path}
	case "tar":
		// Another file at the same path is another image.
		key := fmt.Sprintf("tar %s %d %d", path, info.Size(), info.ModTime().UnixNano())
		i, err = s.unpacked(ctx, key, func(ctx context.Context, dir string) error { return unpackTar(ctx, path, dir) })
	case "oci":
		var m manifest
		if m, err = readLayout(path, u.Fragment); err == nil {
			i, err = s.unpacked(ctx, "oci "+m.Digest, func(ctx context.Context, dir string) error {
				return unpackLayers(ctx, path, m, dir)
			})
		}
	}
	if err != nil {
		return image{}, errNoRootFS(guid, rootFS, "it cannot be read", err)
	}
	return i, nil
}

func (s *images) allowed(path string) bool {
	for _, dir := range s.allowedDirs {
		dir, err := filepath.EvalSymlinks(dir)
		if err == nil && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")) {
			return true
		}
	}
	return false
}

// An unpacking is in progress or over.
type unpacking struct {
	done chan struct{}
	err  error
}

// unpacked returns the image with a key; fill fills a directory with it. It is
// filled once for all callers, and put in its place when it is whole.
func (s *images) unpacked(ctx context.Context, key string, fill func(context.Context, string) error) (image, error) {
	dir := filepath.Join(s.dir, digestOf(key))
	for {
		s.mu.Lock()
		u := s.busy[key]
		if u == nil {
			u = &unpacking{done: make(chan struct{})}
			if s.busy == nil {
				s.busy = map[string]*unpacking{}
			}
			s.busy[key] = u
			s.mu.Unlock()
			u.err = unpack(ctx, dir, s.trash, fill)
			if u.err != nil { // the next one tries again
				s.mu.Lock()
				delete(s.busy, key)
				s.mu.Unlock()
			}
			close(u.done)
			return image{dir: dir}, u.err
		}
		s.mu.Unlock()
		select {
		case <-u.done:
			if u.err == nil {
				return image{dir: dir}, nil
			}
		case <-ctx.Done():
			return image{}, ctx.Err()
		}
	}
}

func unpack(ctx context.Context, dir string, trash tenant.Trash, fill func(context.Context, string) error) error {
	if _, err := os.Stat(dir); err == nil {
		return nil // by an earlier daemon, since the host booted
	}
	half := dir + ".part"
	if err := tenant.RemoveAll(ctx, half); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return err
	}
	err := ids.OnOwnThread(func() error { // whose umask is not the daemon's
		if err := os.Mkdir(half, 0o755); err != nil {
			return err
		}
		return fill(ctx, half)
	})
	if err == nil {
		err = os.Rename(half, dir)
	}
	if err != nil && tenant.RemoveAll(ctx, half) != nil { // a stop waits for none of it
		trash.Put(half)
	}
	return err
}

// errNoRootFS names what is wrong with a root file system.
func errNoRootFS(guid, url, detail string, cause error) error {
	kind := executor.ErrNoRootFS
	if errors.Is(cause, executor.ErrUnsupported) {
		kind = executor.ErrUnsupported
	}
	return &executor.BackendError{Kind: kind, GUID: guid, Detail: fmt.Sprintf("%q: %s", url, detail), Cause: cause}
}
