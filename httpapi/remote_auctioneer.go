package httpapi

import (
	"context"
	"errors"
	"fmt"

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

// Request implements [auction.API]. It sends much work in pieces. After an
// error some of them may have arrived; requesting them again is harmless. An item
// that is larger than the auctioneer takes does not keep the others back: the error
// names each such item and wraps a *problem.TooLargeError.
func (c *RemoteAuctioneer) Request(ctx context.Context, items ...auction.Item) error {
	var failed []error
	err := inPieces(len(items),
		func(i int) int { return jsonBytes(&items[i]) },
		func(from, to int) error {
			_, err := callRequest.Do(ctx, c.client, itemsArgs{items[from:to]})
			return err
		},
		func(i int, err error) {
			failed = append(failed, fmt.Errorf("%v is not sent; set max_body_bytes of the auctioneer higher: %w", items[i].Key, err))
		})
	return errors.Join(append(failed, err)...)
}

// Plan implements [auction.API].
func (c *RemoteAuctioneer) Plan(ctx context.Context, items ...auction.Item) (auction.Result, error) {
	return callPlan.Do(ctx, c.client, itemsArgs{items})
}

var _ auction.API = (*RemoteAuctioneer)(nil)
