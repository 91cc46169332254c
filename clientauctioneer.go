package diego

import (
	"context"
	"slices"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/wire"
)

// An AuctioneerClient asks an auctioneer over HTTP. Of several processes it
// asks the one that leads.
type AuctioneerClient struct{ client *wire.Client }

// NewAuctioneerClient fails with an *executor.ValidationError. It connects to
// nothing yet.
func NewAuctioneerClient(o ClientOptions) (*AuctioneerClient, error) {
	client, err := newClient(o, auctioneerService)
	if err != nil {
		return nil, err
	}
	return &AuctioneerClient{client}, nil
}

// requestPiece is how much work travels at a time, so that no request is too
// large.
const requestPiece = 1000

// Request implements [AuctioneerAPI]. Much work travels in pieces; after an
// error some of them may have arrived, and asking again is harmless.
func (c *AuctioneerClient) Request(ctx context.Context, items ...auction.Item) error {
	for piece := range slices.Chunk(items, requestPiece) {
		if _, err := callRequest.Do(ctx, c.client, itemsArgs{piece}); err != nil {
			return err
		}
	}
	return nil
}

// Plan implements [AuctioneerAPI].
func (c *AuctioneerClient) Plan(ctx context.Context, items ...auction.Item) (auction.Result, error) {
	return callPlan.Do(ctx, c.client, itemsArgs{items})
}
