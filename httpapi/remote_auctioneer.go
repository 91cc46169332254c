package httpapi

import (
	"context"
	"slices"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/wire"
)

// A RemoteAuctioneer calls an auctioneer over HTTP. Of several processes it
// calls the one that leads. All methods may be called at the same time.
type RemoteAuctioneer struct{ client *wire.Client }

// NewRemoteAuctioneer fails with an *executor.ValidationError. It does not
// connect yet.
func NewRemoteAuctioneer(o ClientOptions) (*RemoteAuctioneer, error) {
	client, err := newClient(o, auctioneerService)
	if err != nil {
		return nil, err
	}
	return &RemoteAuctioneer{client}, nil
}

// requestPiece is how much work one request carries, so that no request is too
// large.
const requestPiece = 1000

// Request implements [auction.API]. It sends much work in pieces. After an
// error some of them may have arrived; requesting them again is harmless.
func (c *RemoteAuctioneer) Request(ctx context.Context, items ...auction.Item) error {
	for piece := range slices.Chunk(items, requestPiece) {
		if _, err := callRequest.Do(ctx, c.client, itemsArgs{piece}); err != nil {
			return err
		}
	}
	return nil
}

// Plan implements [auction.API].
func (c *RemoteAuctioneer) Plan(ctx context.Context, items ...auction.Item) (auction.Result, error) {
	return callPlan.Do(ctx, c.client, itemsArgs{items})
}

var _ auction.API = (*RemoteAuctioneer)(nil)
