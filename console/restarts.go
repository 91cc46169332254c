package console

import (
	"context"
	"net/http"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// A restart says when a crashed instance starts again.
type restart struct {
	Index      int       `json:"index"`
	CrashCount int       `json:"crash_count"`
	CrashedAt  time.Time `json:"crashed_at"`
	// At is when convergence may start it; zero if Never.
	At    time.Time `json:"at,omitzero"`
	Never bool      `json:"never"`
}

// restarts answers with the restarts of the process that the query names, by
// index.
func (c *console) restarts(w http.ResponseWriter, r *http.Request) {
	list, err := c.nextRestarts(r.Context(), r.URL.Query().Get("process_guid"))
	if err != nil {
		httpapi.WriteProblem(w, err)
		return
	}
	answer(w, list)
}

func (c *console) nextRestarts(ctx context.Context, processGUID string) ([]restart, error) {
	var v executor.Validator
	if v.Check(processGUID != "", "process_guid", "", "not empty"); v.Err() != nil {
		return nil, v.Err()
	}
	d, err := c.Calls.BBS.Deployment(ctx, processGUID)
	if err != nil {
		return nil, err
	}
	bound, err := c.Calls.BBS.RestartPolicy(ctx)
	if err != nil {
		return nil, err
	}
	policy := lrp.Policy{Restart: bound}.For(d).Restart
	list := []restart{}
	crashed := storage.ActualLRPFilter{ProcessGUIDs: []string{processGUID}, States: []lrp.State{lrp.Crashed}}
	for a, err := range c.Calls.BBS.ActualLRPs(ctx, crashed) {
		if err != nil {
			return nil, err
		}
		next := policy.Next(a.CrashCount, a.Since)
		list = append(list, restart{Index: a.Index, CrashCount: a.CrashCount, CrashedAt: a.Since, At: next.At, Never: next.Never})
	}
	return list, nil
}
