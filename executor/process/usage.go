//go:build unix

package process

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/internal/tenant"
)

// Usage implements [executor.ContainerBackend]. Memory counts a page once for each
// process that shares it.
func (b *Backend) Usage(ctx context.Context, guid string) (executor.Usage, error) {
	c, err := b.find(guid)
	if err != nil {
		return executor.Usage{}, err
	}
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.processes))
	spent := c.spent
	c.mu.Unlock()

	m := executor.Usage{ReceivedBytes: executor.Unknown, SentBytes: executor.Unknown}
	if m.MemoryBytes, m.PIDs, m.CPU, err = c.usage(ctx, living(all)); err != nil {
		return executor.Usage{}, fmt.Errorf("container %q: %w", guid, err)
	}
	m.CPU += spent
	m.DiskBytes = tenant.Measure(ctx, c.dir, tenant.Content)
	return m, ctx.Err()
}
