// Command storewrapper wraps a store: every commit leaves a line in an audit
// log that says what was written, by which request, and what came of it. The
// wrapper embeds a storage.Passthrough and replaces one method; its test runs the
// suite that every store passes.
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// An audited store writes a line for each commit.
type audited struct {
	storage.Passthrough
	mu  sync.Mutex
	log io.Writer
}

// Commit implements [storage.Store].
func (a *audited) Commit(ctx context.Context, b storage.Batch) (storage.Cursor, error) {
	cursor, err := a.Store.Commit(ctx, b)
	kinds := make([]string, len(b.Events))
	for i := range b.Events {
		kinds[i] = b.Events[i].Subject().Kind
	}
	outcome := fmt.Sprintf("up to event %d", cursor)
	if err != nil {
		outcome = "refused: " + err.Error()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprintf(a.log, "request %q: %s: %s\n", b.RequestID, strings.Join(kinds, ", "), outcome)
	return cursor, err
}

func main() {
	ctx, store := context.Background(), &audited{Passthrough: storage.Passthrough{Store: memstore.New(nil)}, log: os.Stdout}
	defer store.Close()
	change, err := lrp.Create(lrp.DeploymentDefinition{
		ProcessGUID: "web", Domain: "apps", Settings: lrp.Settings{Instances: 1}, DefinitionID: "v1",
		Definition: lrp.Definition{RunInfo: executor.RunInfo{
			RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/bin/web", User: "nobody"}},
		}},
	}, time.Now())
	if err != nil {
		log.Fatal(err)
	}
	for _, request := range []string{"first", "first", "second"} { // a repeated one, and one that comes too late
		batch := storage.Batch{RequestID: request}
		batch.AddChange(change)
		_, err := store.Commit(ctx, batch)
		fmt.Println("->", err)
	}
	if _, _, err := storage.ApplySlot(ctx, store, "web", 0, nil, func(s lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
		return lrp.Step(s, d, lrp.CreateMissing{}, time.Now(), lrp.Policy{})
	}); err != nil {
		log.Fatal(err)
	}
}
