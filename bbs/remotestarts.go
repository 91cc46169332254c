package bbs

import (
	"context"
	"sync"
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/lrp"
)

// remoteStarts hand work to an auctioneer in another process, so that nobody
// waits for it. They keep it in memory; convergence requests work again that is
// lost or does not arrive.
type remoteStarts struct {
	auctioneer auction.API
	timeout    time.Duration
	lost       func(what, kind string, err error, args ...any)
	wake       chan struct{}

	mu    sync.Mutex
	items []auction.Item
}

// maxRemoteStarts is how much work may wait to be handed over.
const maxRemoteStarts = 500_000

func (s *remoteStarts) add(items ...auction.Item) {
	s.mu.Lock()
	room := max(0, maxRemoteStarts-len(s.items))
	s.items = append(s.items, items[:min(room, len(items))]...)
	s.mu.Unlock()
	if len(items) > room {
		s.lost("too much work waits for the auctioneer", lrp.RequestStart.String(), nil, "items", len(items)-room)
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// tick hands over the waiting work.
func (s *remoteStarts) tick(ctx context.Context) {
	s.mu.Lock()
	items := s.items
	s.items = nil
	s.mu.Unlock()
	if len(items) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.auctioneer.Request(ctx, items...); err != nil {
		s.lost("work has not reached the auctioneer", lrp.RequestStart.String(), err, "items", len(items))
	}
}
