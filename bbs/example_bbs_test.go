package bbs_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// leadingPlane is a control plane that leads, in virtual time, with two model
// cells of 64 GB.
func leadingPlane(ctx context.Context) *diego.ControlPlane {
	clock := memcell.NewClock()
	store, cells := memstore.New(&memstore.Options{Now: clock.Now}), memcell.NewFleet(2, clock)
	plane, err := diego.New(diego.Options{Store: store, Dial: cells.Dial, Owner: "me", Now: clock.Now, Concurrency: 1})
	if err == nil {
		cells.ReportTo(plane.BBS)
		err = errors.Join(cells.Announce(ctx, store), plane.Tick(ctx))
	}
	if err != nil {
		log.Fatal(err)
	}
	return plane
}

// A consumer follows the log of events, goes away, and goes on where it was.
func ExampleBBS_Subscribe() {
	ctx := context.Background()
	api := leadingPlane(ctx).BBS
	for _, domain := range []string{"apps", "tasks", "platform"} {
		if err := api.UpsertDomain(ctx, domain, 0); err != nil {
			log.Fatal(err)
		}
	}
	position := bbs.FromStart
	for range 3 {
		events, err := api.Subscribe(ctx, position, storage.EventFilter{Kinds: []string{storage.KindDomainUpserted}})
		if err != nil {
			log.Fatal(err)
		}
		for event, err := range events {
			if err != nil {
				log.Fatal(err)
			}
			fmt.Println(event.Sequence, event.Domain.Domain)
			position = event.Sequence // what a consumer keeps
			break
		}
	}
	// Output:
	// 1 apps
	// 2 tasks
	// 3 platform
}

// A call whose answer was lost is repeated under its request id.
func ExampleWithRequestID() {
	api := leadingPlane(context.Background()).BBS
	web := lrp.DesiredLRP{ProcessGUID: "web", Domain: "apps", Definition: lrp.Definition{RunInfo: executor.RunInfo{
		RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}},
	}}}
	ctx := bbs.WithRequestID(context.Background(), "2f6c0e51")
	for range 2 {
		fmt.Println(api.Desire(ctx, web))
	}
	fmt.Println(api.Desire(context.Background(), web))
	// Output:
	// <nil>
	// <nil>
	// deployment "web": exists already
}
