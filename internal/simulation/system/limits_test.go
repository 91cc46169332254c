package system_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
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

// An event that is larger than a client takes ends every subscription for good, and such a
// deployment cuts the list of all.
func TestTheLargestDeploymentCanBeListedAndFollowed(t *testing.T) {
	s := newSystem(t, 1, nil)
	p := newProcess(t)
	p.serve(t, httpapi.HandlerOptions{BBS: s.ControlPlane.BBS})
	client, err := httpapi.NewRemoteBBS(httpapi.ClientOptions{Addresses: []string{p.URL}, AllowPlain: true})
	s.must(err)
	large := definition()
	large.Action.Run.Args = []string{strings.Repeat("<", (executor.MaxDefinitionBytes-1000)/6)}
	large.VolumeMountedFiles = []executor.File{{Path: "f", Content: strings.Repeat("<", (executor.MaxFilesJSONBytes-40)/6)}}
	b := s.ControlPlane.BBS
	s.must(b.CreateDeployment(s.ctx, lrp.DeploymentDefinition{ProcessGUID: "web", Domain: "apps", DefinitionID: "v0", Definition: large}))
	for i := range lrp.MaxDefinitions - 1 {
		id := fmt.Sprint("v", i+1)
		s.must(b.UpdateDeployment(s.ctx, "web", lrp.Update{DefinitionID: &id, Definition: &large}))
	}
	routes := lrp.Routes{"r": []byte(`"` + strings.Repeat("<", (lrp.MaxRoutesBytes-20)/6) + `"`)}
	annotation := strings.Repeat("<", executor.MaxAnnotationBytes)
	s.must(b.UpdateDeployment(s.ctx, "web", lrp.Update{Routes: &routes, Annotation: &annotation}))
	log, err := s.store.Log(s.ctx)
	s.must(err)
	s.must(b.UpdateDeployment(s.ctx, "web", lrp.Update{Instances: new(int)}))
	for d, err := range client.Deployments(s.ctx, storage.DeploymentFilter{}) {
		if s.must(err); len(d.Definitions) != lrp.MaxDefinitions {
			t.Errorf("it has %d definitions", len(d.Definitions))
		}
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	events, err := client.Subscribe(ctx, log.Newest, storage.EventFilter{})
	s.must(err)
	for e, err := range events {
		if s.must(err); len(e.LRP.DeploymentBefore.Definitions) != lrp.MaxDefinitions || len(e.LRP.DeploymentAfter.Definitions) != lrp.MaxDefinitions {
			t.Errorf("the event %v has fewer definitions", e.LRP.Kind)
		}
		return
	}
	t.Error("the subscription ended")
}
