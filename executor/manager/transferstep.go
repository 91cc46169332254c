package manager

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/logfile"
	"github.com/diegosdk/diego/executor/internal/transfer"
)

// A jobStep is a step that is one job.
type jobStep struct {
	builder builder
	pool    pool
	kind    JobKind
	work    func(context.Context) error
	done    func(error)

	job       *job
	cancelled bool
}

func (s *jobStep) start() {
	e := s.builder.recipe.entry
	s.job = e.manager.submit(s.pool, s.kind, e.guid, func(ctx context.Context) func() {
		err := ctx.Err()
		if err == nil { // else it was cancelled before it had a place
			err = brief(s.work(ctx))
		}
		return func() {
			s.job = nil
			if s.cancelled {
				err = errCancelled
			}
			s.done(err)
		}
	})
	s.builder.begun()
}

func (s *jobStep) cancel() {
	s.cancelled = true
	if s.job != nil {
		s.job.stop(s.builder.recipe.entry.manager)
	}
}

// A download is an archive that is put into a container.
type download struct {
	request            transfer.Request
	artifact, to, user string
}

func downloadOf(a executor.DownloadAction) download {
	return download{
		request:  transfer.Request{URL: a.From, CacheKey: a.CacheKey, Algorithm: a.Checksum.Algorithm, Value: a.Checksum.Value},
		artifact: a.Artifact, to: a.To, user: a.User,
	}
}

func (b builder) download(d download, done func(error)) step {
	e := b.recipe.entry
	m := e.manager
	stdout, _ := b.writers(false)
	d.request.Domain = e.container.Tags[executor.TagDomain]
	return &jobStep{builder: b, pool: downloadPool, kind: JobDownload, done: done, work: func(ctx context.Context) error {
		progress(stdout, "Downloading", d.artifact)
		if err := m.put(ctx, e.guid, d); err != nil {
			return fmt.Errorf("download of the %s to %s: %w", cmp.Or(d.artifact, "archive"), d.to, err)
		}
		progress(stdout, "Downloaded", d.artifact)
		return nil
	}}
}

// put fetches an archive and extracts it in a container.
func (m *Manager) put(ctx context.Context, guid string, d download) error {
	if m.fetcher == nil {
		return errNoDir
	}
	lease, err := m.fetcher.Archive(ctx, d.request)
	if err != nil {
		return err
	}
	defer lease.Release()
	file, err := os.Open(lease.Path)
	if err != nil {
		return err
	}
	defer file.Close()
	plain := m.fetcher.Tar(lease.Context, file, d.request.Format)
	defer plain.Close()
	return lease.Outcome(m.options.Backend.StreamIn(lease.Context, guid, d.to, d.user, plain))
}

func (b builder) upload(a executor.UploadAction, done func(error)) step {
	e := b.recipe.entry
	m := e.manager
	stdout, _ := b.writers(false)
	return &jobStep{builder: b, pool: uploadPool, kind: JobUpload, done: done, work: func(ctx context.Context) error {
		progress(stdout, "Uploading", a.Artifact)
		if err := m.send(ctx, e.guid, a); err != nil {
			return fmt.Errorf("upload of %s: %w", a.From, err)
		}
		progress(stdout, "Uploaded", a.Artifact)
		return nil
	}}
}

// progress writes how far the transfer of an artifact is, unless it has no name.
func progress(w *logfile.Writer, what, artifact string) {
	if artifact != "" {
		emit(w, what+" "+artifact)
	}
}

// send archives what is at a path of a container and sends it.
func (m *Manager) send(ctx context.Context, guid string, a executor.UploadAction) error {
	if m.fetcher == nil {
		return errNoDir
	}
	stream, err := m.options.Backend.StreamOut(ctx, guid, a.From, a.User)
	if err != nil {
		return err
	}
	defer stream.Close()
	return m.fetcher.Upload(ctx, a.To, stream)
}
