package console_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/console"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

// ignored effects: nothing is placed unless the test does it.
type ignored struct{}

func (ignored) Carry([]lrp.Effect, []task.Effect) {}

func TestTheConsoleSaysWhenCrashedInstancesStartAgain(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	clock := func() time.Time { return now }
	api, err := bbs.New(bbs.Options{Store: memstore.New(&memstore.Options{Now: clock}), Now: clock, Effects: ignored{}, LRPs: lrp.Policy{Restart: lrp.RestartPolicy{ImmediateRestarts: -1, MaxRestarts: 3, MinBackoff: time.Minute}}})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	definition := lrp.Definition{RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/app", User: "vcap"}}}}
	err = api.CreateDeployment(ctx, lrp.DeploymentDefinition{ProcessGUID: "web", Domain: "apps", DefinitionID: "v1", Definition: definition, Settings: lrp.Settings{Instances: 3}})
	if err != nil {
		t.Fatal(err)
	}
	crash := func(index, times int) {
		for n := range times {
			key := lrp.InstanceKey{InstanceGUID: fmt.Sprintf("i-%d-%d", index, n), CellID: "cell-1"}
			if err := errors.Join(
				api.ClaimLRP(ctx, "web", index, lrp.Claim{DefinitionID: "v1", Instance: key}),
				api.CrashLRP(ctx, "web", index, lrp.Crash{DefinitionID: "v1", Domain: "apps", Instance: key, Reason: "exit status 1"}),
			); err != nil {
				t.Fatal(err)
			}
		}
	}
	crash(1, 1)

	handler, err := console.New(http.NotFoundHandler(), console.Options{
		Calls: httpapi.HandlerOptions{BBS: api, AllowPlain: true},
		Cell:  func(bbs.CellPresence) (rep.API, error) { return nil, errors.New("not asked") },
	})
	if err != nil {
		t.Fatal(err)
	}
	ask := func(query string, status int) []byte {
		t.Helper()
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, "GET", "http://127.0.0.1/console/api/restarts"+query, nil))
		if answer.Code != status {
			t.Fatalf("%q: status %d, want %d: %s", query, answer.Code, status, answer.Body)
		}
		return answer.Body.Bytes()
	}
	var got []map[string]any
	if err := json.Unmarshal(ask("?process_guid=web", http.StatusOK), &got); err != nil {
		t.Fatal(err)
	}
	want := []map[string]any{{"index": 1., "crash_count": 1., "crashed_at": "2026-01-02T03:04:05Z", "at": "2026-01-02T03:05:05Z", "never": false}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	ask("", http.StatusBadRequest)
	ask("?process_guid=nobody", http.StatusNotFound)
}
