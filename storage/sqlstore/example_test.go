package sqlstore_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore"
)

var web = lrp.DeploymentDefinition{
	ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1}, DefinitionID: "v1",
	Definition: lrp.Definition{RunInfo: executor.RunInfo{
		RootFS: "preloaded:linux",
		Action: executor.Action{Run: &executor.RunAction{Path: "/bin/web", User: "vcap"}},
	}},
}

// create is a decision of storage.ApplyDeployment.
func create(*lrp.Deployment) (lrp.Change, error) {
	return lrp.Create(web, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
}

// A store in a database of its own: desire something, start it, and read what
// happened.
func ExampleOpen() {
	ctx := context.Background()
	store, err := sqlstore.Open(ctx, ":memory:", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	if _, _, err := storage.ApplyDeployment(ctx, store, "web", nil, create); err != nil {
		fmt.Println(err)
		return
	}
	decision, _, err := storage.ApplySlot(ctx, store, "web", 0, nil, func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
		return lrp.Step(slot, d, lrp.CreateMissing{}, time.Now(), lrp.Policy{})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("to do:", decision.Effects[0].Kind)
	for event, err := range store.Events(ctx, 0, storage.EventFilter{}) {
		fmt.Println(event.Sequence, event.Subject().Kind, err)
	}
	// Output:
	// to do: RequestStart
	// 1 lrp_deployment_created <nil>
	// 2 desired_lrp_created <nil>
	// 3 actual_lrp_instance_created <nil>
	// 4 actual_lrp_created <nil>
}

// A deployment and an order of the caller's own are there together, or neither
// of them is.
func ExampleStore_WithTx() {
	ctx := context.Background()
	store, err := sqlstore.Open(ctx, ":memory:", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close()

	tx, err := store.BeginTx(ctx, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err1 := tx.Exec("CREATE TABLE orders (app TEXT)")
	_, err2 := tx.Exec("INSERT INTO orders VALUES ('web')")
	_, _, err3 := storage.ApplyDeployment(ctx, store.WithTx(tx), "web", nil, create)
	fmt.Println("in the transaction:", errors.Join(err1, err2, err3, tx.Rollback()))

	_, err = store.Deployment(ctx, "web")
	fmt.Println("rolled back:", err)
	// Output:
	// in the transaction: <nil>
	// rolled back: deployment "web": not found
}

// The tables as SQL, for those who run migrations themselves.
func ExampleMigrations() {
	migrations, err := sqlstore.Migrations(sqlstore.PostgreSQL, "diego_")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range migrations {
		fmt.Println(m.Version, m.Name, strings.Count(m.SQL, "CREATE TABLE"), "tables")
	}
	// Output:
	// 1 0001_records 13 tables
	// 2 0002_forgotten_leases 0 tables
	// 3 0003_log_gaps 1 tables
	// 4 0004_rules 0 tables
}
