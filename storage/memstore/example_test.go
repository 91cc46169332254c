package memstore_test

import (
	"context"
	"fmt"
	"time"

	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// In virtual time a domain expires when the test says so.
func Example() {
	ctx := context.Background()
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	store := memstore.New(&memstore.Options{Now: func() time.Time { return now }})
	defer store.Close()
	store.Commit(ctx, storage.Batch{Domains: []storage.DomainWrite{{Name: "apps", TTL: time.Minute}, {Name: "platform"}}})
	now = now.Add(2 * time.Minute)
	for domain, err := range store.Domains(ctx) {
		fmt.Println(domain.Name, domain.Fresh(now), err)
	}
	// Output:
	// apps false <nil>
	// platform true <nil>
}
