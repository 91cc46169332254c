package lrp_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// FuzzStep reads its input as a sequence of commands, of what the consumer
// does and of time that passes, with odd arguments among them, and checks the
// rules of every decision. Two bytes are one step.
func FuzzStep(f *testing.F) {
	f.Add([]byte{0, 0, 20, 0, 30, 1, 40, 2, 50, 3})
	f.Add([]byte("a rollout in which everything goes wrong"))
	odd := []string{"", "v1", "v2", "v3", "x", string(bytes.Repeat([]byte("v"), 256)), "p", "\xff"}
	f.Fuzz(func(t *testing.T, input []byte) {
		w := world{slot: lrp.Slot{ProcessGUID: "p"}, now: epoch}
		s := space{[]string{"v1", "v2", "v3"}, 3, 3, true, true, true}
		policies := []lrp.Policy{{}, policy, {EvacuationTimeout: time.Nanosecond}, {Restart: lrp.RestartPolicy{ImmediateRestarts: -1, MaxRestarts: -1, MinBackoff: 1}}}
		for i := 0; i+1 < len(input) && i < 400; i += 2 {
			what, how := input[i], input[i+1]
			key := s.instances()[how%4]
			if how >= 250 {
				key = lrp.InstanceKey{InstanceGUID: odd[how%8], CellID: odd[what%8]}
			}
			definition, domain := odd[how/3%8], odd[how/24%8]
			net := lrp.NetInfo{Address: odd[how/5%8], Ports: make([]lrp.PortMapping, how%3)}
			var c lrp.Command
			switch what % 24 {
			case 0:
				c = lrp.CreateMissing{}
			case 1:
				c = lrp.Claim{DefinitionID: definition, Instance: key}
			case 2, 3:
				c = lrp.Start{DefinitionID: definition, Domain: domain, Instance: key, NetInfo: net, Unready: how%2 == 0, Zone: odd[how/7%8]}
			case 4, 5:
				c = lrp.Crash{DefinitionID: definition, Domain: domain, Instance: key, Reason: "r" + odd[how%8]}
			case 6:
				c = lrp.Remove{DefinitionID: definition, Instance: key}
			case 7:
				c = lrp.EvacuateClaimed{DefinitionID: definition, Instance: key}
			case 8, 9:
				c = lrp.EvacuateRunning{DefinitionID: definition, Instance: key, NetInfo: net, RunningInstances: int(how%3) - 1}
			case 10:
				c = lrp.EvacuateStopped{DefinitionID: definition, Instance: key}
			case 11:
				c = lrp.EvacuateCrashed{DefinitionID: definition, Instance: key, Reason: "r"}
			case 12:
				c = lrp.RemoveEvacuating{DefinitionID: definition, Instance: key}
			case 13:
				c = lrp.Fail{DefinitionID: definition, Error: lrp.PlacementError{Reason: lrp.PlacementReason(how % 8), Detail: odd[how/8%8]}}
			case 14:
				c = lrp.Retire{DefinitionID: definition, MissingCell: key.CellID}
			case 15:
				c = lrp.StopExtra{MissingCells: []string{key.CellID}}
			case 16:
				c = lrp.Restart{DefinitionID: definition}
			case 17:
				c = lrp.MarkSuspect{CellID: key.CellID}
			case 18:
				c = lrp.Recover{CellID: key.CellID}
			case 19:
				c = lrp.RemoveSuspect{}
			case 20:
				c = lrp.Prune{MissingCells: []string{key.CellID}}
			case 21:
				c = lrp.AdvanceRollout{}
			case 22:
				c = lrp.StopOvertaken{}
			default:
				changes := s.changes(w)
				w = changes[int(how)%len(changes)]
				if w.deployment != nil && how%7 == 0 {
					d := *w.deployment
					d.UpdateStrategy = 1 - d.UpdateStrategy
					w.deployment = &d
				}
				continue
			}
			slot, decision, _, broken := stepped(w.slot, w.deployment, c, w.now, policies[int(what/24)%len(policies)])
			if broken != nil {
				t.Fatalf("%v\n%#v\nin %+v", broken, c, w.slot)
			}
			for _, e := range decision.Events {
				if e.Explain() == "" {
					t.Fatalf("%v has no explanation", e.Kind)
				}
			}
			w = world{slot, deploymentAfter(w.deployment, decision), w.now.Add(time.Duration(how)*time.Second + time.Microsecond)}
		}
	})
}

// roundTrip checks that what decodes encodes, and that nothing changes from
// then on.
func roundTrip[T any](t *testing.T, data []byte) (v T, ok bool) {
	if json.Unmarshal(data, &v) != nil {
		return v, false
	}
	once, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("%s: decodes, but does not encode: %v", data, err)
	}
	var again T
	if err := json.Unmarshal(once, &again); err != nil {
		t.Fatalf("%s: does not decode again: %v", once, err)
	}
	twice, err := json.Marshal(again)
	if err != nil || !bytes.Equal(once, twice) {
		t.Fatalf("got %s, then %s, %v", once, twice, err)
	}
	return again, true
}

func mustJSON(f *testing.F, v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		f.Fatal(err)
	}
	return data
}

func FuzzActualLRPJSON(f *testing.F) {
	f.Add(mustJSON(f, lrp.ActualLRP{
		Key: lrp.Key{ProcessGUID: "p", DefinitionID: "v1", Domain: "d"}, InstanceKey: alpha,
		NetInfo: lrp.NetInfo{Address: "a", Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: 60000}}},
		State:   lrp.Running, Presence: lrp.Evacuating, Since: epoch, RunningSince: epoch, ExpiresAt: epoch,
		ModificationTag: lrp.ModificationTag{Epoch: 1, Index: 2},
	}))
	f.Add([]byte(`{"state": "UNCLAIMED", "placement_error": "insufficient resources: memory"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		readsLikeReflection(t, data)
		r, ok := roundTrip[lrp.ActualLRP](t, data)
		if !ok {
			return
		}
		if err := r.Validate(); err != nil {
			if !errors.Is(err, lrp.ErrInvariant) {
				t.Fatal(err)
			}
			return
		}
		if _, _, _, broken := stepped(lrp.Slot{ProcessGUID: r.ProcessGUID, Index: r.Index, Records: []lrp.ActualLRP{r}}, nil, lrp.StopExtra{}, epoch, lrp.Policy{}); broken != nil {
			t.Fatal(broken)
		}
	})
}

func FuzzUpdateJSON(f *testing.F) {
	f.Add([]byte(`{"instances": 17, "routes": {"cf-router": [{"hostnames": ["a"], "port": 8080}]}, "annotation": "x"}`))
	f.Add([]byte(`{"definition_id": "v2", "definition": {"root_fs": "preloaded:linux", "action": {"run": {"path": "/a", "user": "u"}}}}`))
	f.Add([]byte(`{"memory_mb": 1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		u, ok := roundTrip[lrp.Update](t, data)
		if !ok {
			return
		}
		d := valid()
		change, err := d.Update(u)
		switch {
		case err != nil:
			if !errors.Is(err, executor.ErrInvalid) && !errors.Is(err, lrp.ErrRefused) {
				t.Fatal(err)
			}
		case !change.IsZero():
			if err := change.After.Validate(); err != nil {
				t.Fatalf("an update makes an invalid deployment: %v", err)
			}
		}
	})
}

func FuzzPromoteProject(f *testing.F) {
	f.Add(mustJSON(f, lrp.DesiredLRP{ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{Instances: 3}, Definition: runnable()}), true)
	f.Add([]byte(`{"process_guid": "p", "routes": {"r": {}}, "update_strategy": "RECREATE"}`), false)
	f.Fuzz(func(t *testing.T, data []byte, running bool) {
		d, ok := roundTrip[lrp.DesiredLRP](t, data)
		if !ok {
			return
		}
		promoted := lrp.Promote(d, running)
		back := promoted.Project()
		want, _ := json.Marshal(d)
		if got, _ := json.Marshal(back); !bytes.Equal(got, want) {
			t.Fatalf("got %s, want %s", got, want)
		}
		if (promoted.HealthyDefinitionID == d.ProcessGUID) != running && d.ProcessGUID != "" {
			t.Fatalf("healthy is %q", promoted.HealthyDefinitionID)
		}
		if d.Validate() == nil {
			if err := promoted.Validate(); err != nil {
				t.Fatalf("a valid DesiredLRP makes an invalid deployment: %v", err)
			}
		}
	})
}

func FuzzDeploymentValidate(f *testing.F) {
	f.Add(mustJSON(f, valid()))
	f.Add([]byte(`{"process_guid": "p", "instances": -1, "definitions": {"": {}}, "active_definition_id": "v1"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, ok := roundTrip[lrp.Deployment](t, data)
		if !ok {
			return
		}
		if err := d.Validate(); err != nil {
			var invalid *executor.ValidationError
			if !errors.As(err, &invalid) {
				t.Fatal(err)
			}
			return
		}
		// Step accepts every valid deployment.
		if _, _, refused, broken := stepped(lrp.Slot{ProcessGUID: d.ProcessGUID}, &d, lrp.CreateMissing{}, epoch, lrp.Policy{}); refused != nil || broken != nil {
			t.Fatal(refused, broken)
		}
		projection := d.Project()
		if err := projection.Validate(); err != nil {
			t.Fatalf("a valid deployment has an invalid projection: %v", err)
		}
	})
}
