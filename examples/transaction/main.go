// Command transaction keeps a business of its own and Diego in one SQLite
// database: an order and the app that it pays for are there together, or
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

	_ "github.com/mattn/go-sqlite3" // registers the driver "sqlite3"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore"
)

var errDeclined = errors.New("the card was declined")

// A shop sells apps.
type shop struct {
	db    *sql.DB
	store *sqlstore.Store
}

// buy takes the money first and begins the transaction then: nobody should wait
// for a card while a database is locked. An order that is left with the state
// "paying" by a crash says whose payment to look into.
func (s *shop) buy(ctx context.Context, app string, pay func() error) error {
	if _, err := s.db.ExecContext(ctx, "INSERT INTO orders (app, state) VALUES (?, 'paying')", app); err != nil {
		return fmt.Errorf("%s is taken: %w", app, err)
	}
	if err := pay(); err != nil {
		_, undone := s.db.ExecContext(ctx, "DELETE FROM orders WHERE app = ?", app)
		return errors.Join(err, undone)
	}
	return s.transact(ctx, "UPDATE orders SET state = 'paid' WHERE app = ?", app, func(b *bbs.BBS) error {
		return b.Desire(ctx, lrp.DesiredLRP{
			ProcessGUID: app, Domain: "shop", Settings: lrp.Settings{Instances: 2},
			Definition: lrp.Definition{RunInfo: executor.RunInfo{
				RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/bin/" + app, User: "nobody"}},
			}},
		})
	})
}

// cancel ends an order and its app. The instances stop once that is committed.
func (s *shop) cancel(ctx context.Context, app string) error {
	return s.transact(ctx, "DELETE FROM orders WHERE app = ?", app, func(b *bbs.BBS) error {
		return b.DeleteDeployment(ctx, app)
	})
}

// transact changes an order and what Diego is asked for in one transaction. The
// BBS comes last: from its first change on, all other commits wait.
func (s *shop) transact(ctx context.Context, change, app string, ask func(*bbs.BBS) error) error {
	tx, err := s.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // after a Commit it does nothing
	if _, err := tx.ExecContext(ctx, change, app); err != nil {
		return err
	}
	service, err := bbs.New(bbs.Options{Store: s.store.WithTx(tx)})
	if err != nil {
		return err
	}
	if err := ask(service); err != nil {
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
	_, err = db.Exec("CREATE TABLE orders (app TEXT PRIMARY KEY, state TEXT)")
	check(err)
	store, err := sqlstore.New(db, sqlstore.SQLite, nil) // its tables beside the shop's
	check(err)
	defer store.Close()
	s := &shop{db, store}

	// The control plane may as well be another process: it finds in the log of
	// events what the shop has committed. Here it takes its steps by hand.
	plane, err := diego.New(diego.Options{Store: store, Owner: "plane-1", Dial: func(bbs.CellPresence) (auction.CellClient, error) {
		return nil, errors.New("this example has no cells")
	}})
	check(err)
	check(plane.Tick(ctx))

	fmt.Println("blog:", s.buy(ctx, "blog", func() error { return nil }))
	fmt.Println("wiki:", s.buy(ctx, "wiki", func() error { return errDeclined }))
	s.show(ctx, plane)
	fmt.Println("cancelled:", s.cancel(ctx, "blog"))
	s.show(ctx, plane)
}

// show lets the control plane look at the log, and says what there is.
func (s *shop) show(ctx context.Context, plane *diego.ControlPlane) {
	for range 2 {
		check(plane.Tick(ctx))
	}
	var orders, instances int
	check(s.db.QueryRow("SELECT COUNT(*) FROM orders WHERE state = 'paid'").Scan(&orders))
	for _, err := range s.store.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
		check(err)
		instances++
	}
	fmt.Printf("paid orders: %d, instances: %d\n", orders, instances)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
