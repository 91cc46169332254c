package bbs_test

import (
	"context"
	"fmt"
	"log"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// A consumer follows the log of events, goes away, and goes on where it was.
func ExampleBBS_Subscribe() {
	ctx := context.Background()
	api, err := bbs.New(bbs.Options{Store: memstore.New(nil)})
	if err != nil {
		log.Fatal(err)
	}
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
	api, err := bbs.New(bbs.Options{Store: memstore.New(nil)})
	if err != nil {
		log.Fatal(err)
	}
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
