package system_test

import (
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/task"
)

var _ rep.BBS = (*httpapi.RemoteBBS)(nil)

// A cell that reports over HTTP understands refusals, what is not there, and
// answers to repeated calls as one that reports in the same process.
func TestACellReportsOverHTTPAsInProcess(t *testing.T) {
	w := newTown(t, 2, nil)
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{BBS: w.BBS, AllowPlain: true})
	w.must(err)
	server := httptest.NewServer(handler)
	defer server.Close()
	client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{server.URL}, AllowPlain: true})
	w.must(err)
	w.door.bbs = client

	w.desire("web", 2, definition())
	w.desire("weak", 1, doing("wait 10s", "exit 1"))
	w.desireTask("job", doing("wait 5s", "write /result 42"), "/result")
	w.door.loses["StartTask"] = true
	w.pass(20 * time.Second)
	if got := w.task("job"); got.State != task.Completed || got.Failed || got.Result != "42" {
		t.Errorf("the task is %+v", got)
	}
	w.must(w.BBS.DeleteDeployment(w.ctx, "weak"))
	w.must(w.cells[0].Evacuate(w.ctx))
	w.until("evacuated", w.cells[0].Evacuated)
	w.until("settled", func() bool {
		return slices.Equal(w.records(), []string{"web/0 RUNNING ORDINARY cell-2", "web/1 RUNNING ORDINARY cell-2"})
	})
	// A container that nobody wants any more, and one whose work has gone.
	w.must(w.BBS.DeleteDeployment(w.ctx, "web"))
	w.pass(5 * time.Second)
	w.wantRecords()
	w.wantEmpty(w.cells...)
}
