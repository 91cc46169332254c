package main

import (
	"io"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/storage/storagetest"
)

func openAudited(t testing.TB, o storagetest.Options) storagetest.Harness {
	var mu sync.Mutex
	now := time.Unix(1_900_000_000, 0)
	s := memstore.New(&memstore.Options{Events: o.Events, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	return storagetest.Harness{
		Store: &audited{Passthrough: storage.Passthrough{Store: s}, log: io.Discard},
		Advance: func(d time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			now = now.Add(d)
		},
		Corrupt: func(t testing.TB, key storage.RecordKey) {
			if !s.Corrupt(key) {
				t.Fatalf("%v is not there", key)
			}
		},
	}
}

func TestTheWrapperIsAStoreLikeAnyOther(t *testing.T) {
	storagetest.Run(t, openAudited)
	storagetest.RunConcurrent(t, openAudited)
}

func Example() {
	main()
	// Output:
	// request "first": lrp_deployment_created, desired_lrp_created: up to event 2
	// -> <nil>
	// request "first": lrp_deployment_created, desired_lrp_created: refused: request "first": request was committed before, at event 2
	// -> request "first": request was committed before, at event 2
	// request "second": lrp_deployment_created, desired_lrp_created: refused: deployment "web": exists already
	// -> deployment "web": exists already
	// request "": actual_lrp_instance_created, actual_lrp_created: up to event 4
}
