package system_test

import (
	"errors"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

func TestWhatCannotBeIsRefusedAsTheCallersMistakeOnBothSidesOfTheAPI(t *testing.T) {
	s := newSystem(t, 1, nil)
	p := newProcess(t)
	p.serve(t, httpapi.HandlerOptions{BBS: s.ControlPlane.BBS})
	client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{p.URL}, AllowPlain: true})
	if err != nil {
		t.Fatal(err)
	}
	only := func(_ any, err error) error { return err }
	web, job := desired("web", 1), desiredTask("job", "")
	web.Domain, job.Domain = "apps\nERROR all is lost", "apps\r"
	alpha := lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-1"}
	for side, b := range map[string]bbs.API{"in process": s.ControlPlane.BBS, "over HTTP": client} {
		ctx := t.Context()
		environment := desired("web", 1)
		environment.Action.Run.Env = []executor.EnvVar{{Name: "A\nB", Value: "v\nw"}}
		for call, err := range map[string]error{
			"Retire at -1":               b.Retire(ctx, "web", -1, ""),
			"Slot at -1":                 only(b.Slot(ctx, "web", -1)),
			"Timeline at -1":             only(b.Timeline(ctx, "web", -1)),
			"ClaimLRP at -1":             b.ClaimLRP(ctx, "web", -1, lrp.Claim{Instance: alpha}),
			"EvacuateRunningLRP at -1":   only(b.EvacuateRunningLRP(ctx, "web", -1, lrp.EvacuateRunning{Instance: alpha})),
			"FailActualLRP at -1":        b.FailActualLRP(ctx, lrp.Key{ProcessGUID: "web", Index: -1, DefinitionID: "d"}, lrp.PlacementError{Reason: lrp.InsufficientResources}),
			"Desire in two lines":        b.Desire(ctx, web),
			"DesireTask in two lines":    b.DesireTask(ctx, job),
			"UpsertDomain of two lines":  b.UpsertDomain(ctx, web.Domain, time.Minute),
			"Desire with a name of two":  b.Desire(ctx, environment),
			"CreateDeployment in two":    b.CreateDeployment(ctx, lrp.DeploymentDefinition{ProcessGUID: "web", Domain: web.Domain, Settings: web.Settings, DefinitionID: "d", Definition: web.Definition}),
			"DesireTask with a new line": b.DesireTask(ctx, task.Desire{GUID: "job", Domain: "\u0085", Definition: job.Definition}),
		} {
			if !errors.Is(err, executor.ErrInvalid) {
				t.Errorf("%s, %s: got %v, want ErrInvalid", side, call, err)
			}
		}
		for _, address := range []string{"cell-1", "file:///etc/passwd", "https://cell-1/x?y"} {
			// In this process an address is the affair of its Dial.
			if err := b.Announce(ctx, bbs.CellPresence{CellID: "cell-8", Address: address}, side, 0); errors.Is(err, executor.ErrInvalid) != (b == bbs.API(client)) {
				t.Errorf("%s: %s: %v", side, address, err)
			}
		}
		if err := b.Announce(ctx, bbs.CellPresence{CellID: "cell-9", Address: "https://10.0.0.9:1801"}, side, time.Minute); err != nil {
			t.Errorf("%s: a proper address: %v", side, err)
		}
		if err := b.Leave(ctx, "cell-9", side); err != nil {
			t.Error(err)
		}
	}
}
