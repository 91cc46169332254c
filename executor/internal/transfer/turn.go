package transfer

import (
	"context"
	"sync"
	"time"
)

// A server decides how long a transfer lasts, and a tenant may have any number of
// servers. So a transfer keeps its place only for a Turn. Then it goes on without
// it, beside at most LateEach others for each place: each takes disk.
const (
	Turn     = 30 * time.Second
	LateEach = 3
)

// enter waits for a place among the downloads. The caller leaves it at the end.
func (f *Fetcher) enter(ctx context.Context) (leave func(), err error) {
	select {
	case f.downloads <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var mu sync.Mutex
	over, held := false, f.downloads
	mu.Lock()
	defer mu.Unlock()
	var end *time.Timer
	end = time.AfterFunc(f.options.Turn, func() {
		mu.Lock()
		defer mu.Unlock()
		if over {
			return
		}
		select {
		case f.late <- struct{}{}:
			<-held
			held = f.late
		default:
			end.Reset(f.options.Turn)
		}
	})
	return func() {
		end.Stop()
		mu.Lock()
		defer mu.Unlock()
		over = true
		<-held
	}, nil
}
