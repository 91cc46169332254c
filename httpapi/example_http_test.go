package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep/memcell"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// A control plane is served, and asked from elsewhere with the same methods and
// the same errors. A real server has TLS and asks for certificates, and needs
// no AllowPlain.
func ExampleNewHandler() {
	ctx := context.Background()
	cells := memcell.NewFleet(1, memcell.NewClock())
	plane, err := diego.New(diego.Options{Store: memstore.New(nil), Dial: cells.Dial, Owner: "bbs-1", Address: "https://bbs-1.example:8889"})
	if err != nil {
		fmt.Println(err)
		return
	}
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{
		BBS: plane.BBS, Convergence: plane, Auctioneer: plane, Ready: plane.Ready, AllowPlain: true,
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	server := httptest.NewServer(handler)
	defer server.Close()

	client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, AllowPlain: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = client.Deployment(ctx, "web")
	fmt.Println(errors.Is(err, storage.ErrNotFound), err)
	err = client.UpsertDomain(ctx, "apps", 0)
	fmt.Println(errors.Is(err, bbs.ErrNotLeader))
	// Output:
	// true deployment "web": not found
	// true
}
