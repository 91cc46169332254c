// Command transaction keeps a business of its own and Diego in one SQLite
// database: an order and the LRP that it pays for are there together, or
// neither of them is.
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	_ "github.com/mattn/go-sqlite3" // registers the driver "sqlite3"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore"
)

var errDeclined = errors.New("the card was declined")

// A shop sells LRPs.
type shop struct {
	db    *sql.DB
	store *sqlstore.Store
}

// buy writes an order and desires its LRP, in one transaction of the shop's.
func (s *shop) buy(ctx context.Context, app string, pay func() error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a Commit it does nothing
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (app) VALUES (?)", app); err != nil {
		return err
	}
	_, _, err = storage.ApplyDeployment(ctx, s.store.WithTx(tx), app, nil, func(d *lrp.Deployment) (lrp.Change, error) {
		if d != nil {
			return lrp.Change{}, fmt.Errorf("%s: %w", app, storage.ErrExists)
		}
		return lrp.Create(lrp.DeploymentDefinition{
			ProcessGUID: app, Domain: "shop", Settings: lrp.Settings{Instances: 1}, DefinitionID: "v1",
			Definition: lrp.Definition{RunInfo: executor.RunInfo{
				RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/bin/" + app, User: "nobody"}},
			}},
		}, time.Now())
	})
	if err == nil {
		err = pay()
	}
	if err != nil {
		return err // and all of it is undone
	}
	return tx.Commit()
}

func main() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "shop")
	check(err)
	defer os.RemoveAll(dir)
	db, err := sql.Open("sqlite3", "file:"+filepath.Join(dir, "shop.db")+"?_journal_mode=WAL&_busy_timeout=5000&_txlock=immediate")
	check(err)
	defer db.Close()
	_, err = db.Exec("CREATE TABLE orders (app TEXT)")
	check(err)
	store, err := sqlstore.New(db, sqlstore.SQLite, nil) // its tables beside the shop's
	check(err)
	defer store.Close()
	s := &shop{db, store}

	fmt.Println("blog:", s.buy(ctx, "blog", func() error { return nil }))
	fmt.Println("wiki:", s.buy(ctx, "wiki", func() error { return errDeclined }))
	fmt.Println("blog:", s.buy(ctx, "blog", func() error { return nil }))

	var orders int
	check(db.QueryRow("SELECT COUNT(*) FROM orders").Scan(&orders))
	fmt.Println("orders:", orders)
	for d, err := range store.Deployments(ctx, storage.DeploymentFilter{}) {
		check(err)
		fmt.Println("desired:", d.ProcessGUID)
	}
	for e, err := range store.Events(ctx, 0, storage.EventFilter{}) {
		check(err)
		fmt.Println("event:", e.Sequence, e.Subject().Kind)
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
