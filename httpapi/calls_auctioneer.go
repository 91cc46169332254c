package httpapi

import (
	"context"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/internal/wire"
)

type itemsArgs struct {
	Items []auction.Item `json:"items"`
}

// The calls of the auctioneer.
var (
	callRequest = tell(call("Request", "auctioneer/request", controllers, wire.Always,
		"Adds work to the next batch. Work that waits already is not added twice."),
		func(ctx context.Context, a auction.API, in itemsArgs) error { return a.Request(ctx, in.Items...) })
	callPlan = ask(call("Plan", "auctioneer/plan", enquirers, wire.Always,
		"Says where work would go now, or why it would go nowhere. Nothing is sent to the cells."),
		func(ctx context.Context, a auction.API, in itemsArgs) (auction.Result, error) {
			return a.Plan(ctx, in.Items...)
		})
)

var auctioneerCalls = []wire.Endpoint[auction.API]{callRequest, callPlan}
