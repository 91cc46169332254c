package localcell

import (
	"context"
	"io"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

// Exec implements [rep.Sessions].
func (c *Cell) Exec(ctx context.Context, r rep.ExecRequest, s executor.Streams) (end executor.Exit, err error) {
	err = c.session(ctx, r.ContainerGUID, storage.SessionExec, r.Command, func(v *manager.Visit) (*executor.Exit, error) {
		end, err = v.Exec(ctx, r.Program, s)
		return &end, err
	})
	return end, err
}

// CopyIn implements [rep.Sessions].
func (c *Cell) CopyIn(ctx context.Context, r rep.CopyRequest, tar io.Reader) error {
	return c.session(ctx, r.ContainerGUID, storage.SessionCopyIn, []string{r.Path}, func(v *manager.Visit) (*executor.Exit, error) {
		return nil, v.CopyIn(ctx, r.Path, tar)
	})
}

// CopyOut implements [rep.Sessions].
func (c *Cell) CopyOut(ctx context.Context, r rep.CopyRequest, tar io.Writer) error {
	return c.session(ctx, r.ContainerGUID, storage.SessionCopyOut, []string{r.Path}, func(v *manager.Visit) (*executor.Exit, error) {
		return nil, v.CopyOut(ctx, r.Path, tar)
	})
}

// session carries out a session, which is audited, or reports why it is refused.
func (c *Cell) session(ctx context.Context, containerGUID, kind string, command []string, carryOut func(*manager.Visit) (*executor.Exit, error)) error {
	visit, err := c.Manager.Enter(containerGUID, storage.Caller(ctx))
	if err != nil {
		err = notFound(err)
		c.Refused(ctx, containerGUID, kind, command, err)
		return err
	}
	return c.Audited(ctx, containerGUID, kind, command, func() (*executor.Exit, error) {
		end, err := carryOut(visit)
		return end, notFound(err)
	})
}
