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

// Metrics implements [executor.ContainerBackend]. Memory counts pages that
// processes share once for each.
func (b *Backend) Metrics(ctx context.Context, guid string) (executor.Metrics, error) {
	c, err := b.find(guid)
	if err != nil {
		return executor.Metrics{}, err
	}
	c.mu.Lock()
	all := slices.Collect(maps.Keys(c.processes))
	spent := c.spent
	c.mu.Unlock()

	var m executor.Metrics
	if m.MemoryBytes, m.PIDs, m.CPU, err = c.usage(ctx, living(all)); err != nil {
		return executor.Metrics{}, fmt.Errorf("container %q: %w", guid, err)
	}
	m.CPU += spent
	m.DiskBytes = tenant.Measure(ctx, c.dir, tenant.Content)
	return m, ctx.Err()
}
