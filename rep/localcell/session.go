package localcell

import (
	"context"
	"io"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/rep"
)

// Exec implements [rep.Sessions].
func (c *Cell) Exec(ctx context.Context, r rep.ExecRequest, s executor.Streams) (end executor.Exit, err error) {
	err = c.Audited(ctx, r.ContainerGUID, "exec", r.Command, func() (*executor.Exit, error) {
		end, err = c.Manager.Exec(ctx, r.ContainerGUID, r.Program, s)
		return &end, notFound(err)
	})
	return end, err
}

// CopyIn implements [rep.Sessions].
func (c *Cell) CopyIn(ctx context.Context, r rep.CopyRequest, tar io.Reader) error {
	return c.Audited(ctx, r.ContainerGUID, "copy_in", []string{r.Path}, func() (*executor.Exit, error) {
		return nil, notFound(c.Manager.CopyIn(ctx, r.ContainerGUID, r.Path, tar))
	})
}

// CopyOut implements [rep.Sessions].
func (c *Cell) CopyOut(ctx context.Context, r rep.CopyRequest, tar io.Writer) error {
	return c.Audited(ctx, r.ContainerGUID, "copy_out", []string{r.Path}, func() (*executor.Exit, error) {
		return nil, notFound(c.Manager.CopyOut(ctx, r.ContainerGUID, r.Path, tar))
	})
}
