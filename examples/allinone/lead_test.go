package main

import (
	"context"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/storage/memstore"
)

// What a killed run has left may take a minute to end, and the sample is desired
// after that.
func TestAFleetThatClearsForLongerThanALeaseStillLeads(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		plane, err := diego.New(diego.Options{Store: memstore.New(nil), Dial: (&fleet{}).dial, Owner: "allinone"})
		if err != nil {
			t.Fatal(err)
		}
		f := &fleet{ControlPlane: plane, cells: nil}
		err = f.leadWhile(t.Context(), func(context.Context) error {
			time.Sleep(time.Minute)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if leading, until := f.Leadership.Leading(); !leading {
			t.Errorf("after a minute nobody leads, since %v", time.Since(until))
		}
	})
}
