package lrp_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// 002 §Fetching ActualLRPs: the names of the fields.
func TestAnActualLRPIsOneFlatObject(t *testing.T) {
	r := lrp.ActualLRP{
		Key:         lrp.Key{ProcessGUID: "p", DefinitionID: "v1", Index: 15, Domain: "d"},
		InstanceKey: alpha,
		NetInfo:     lrp.NetInfo{Address: "10.10.11.11", Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: 60001}}},
		State:       lrp.Running, Presence: lrp.Evacuating, CrashCount: 1, CrashReason: "r", Routable: true, Zone: "z1",
		Since: time.Unix(0, 1234567).UTC(), RunningSince: time.Unix(0, 2).UTC(), ExpiresAt: time.Unix(0, 3).UTC(),
		ModificationTag: lrp.ModificationTag{Epoch: 1 << 60, Index: 4},
	}
	data, err := json.Marshal(r)
	want := `{"process_guid":"p","definition_id":"v1","index":15,"domain":"d","instance_guid":"i1","cell_id":"cell-1",` +
		`"address":"10.10.11.11","ports":[{"container_port":8080,"host_port":60001}],"state":"RUNNING","presence":"EVACUATING",` +
		`"crash_count":1,"crash_reason":"r","placement_error":"","routable":true,"zone":"z1",` +
		`"modification_tag":{"epoch":"1152921504606846976","index":4},"since":"1970-01-01T00:00:00.001234567Z",` +
		`"running_since":"1970-01-01T00:00:00.000000002Z","expires_at":"1970-01-01T00:00:00.000000003Z"}`
	if err != nil || string(data) != want {
		t.Errorf("got  %s, %v\nwant %s", data, err, want)
	}
	var back lrp.ActualLRP
	if err := json.Unmarshal(data, &back); err != nil || !back.Equal(&r) {
		t.Errorf("got %+v, %v", back, err)
	}
}

func TestWhatIsNoActualLRPDoesNotDecode(t *testing.T) {
	for text, invalid := range map[string]bool{
		`{}`:                   true,
		`{"state": "running"}`: true,
		`{"state": "RUNNING", "presence": "GONE"}`:         true,
		`{"state": "UNCLAIMED", "placement_error": "sad"}`: true,
		`{"state": "UNCLAIMED", "since": "yesterday"}`:     false,
		`[]`: false,
	} {
		r := lrp.ActualLRP{CrashCount: 7}
		err := json.Unmarshal([]byte(text), &r)
		if err == nil || errors.Is(err, executor.ErrInvalid) != invalid {
			t.Errorf("%s: %v", text, err)
		}
		if r.CrashCount != 7 || r.State != 0 {
			t.Errorf("%s: half a record is left: %+v", text, r)
		}
	}
}

// Over HTTP an update does what it does in this process.
func TestAnUpdateThatLeavesAMapEmptyDoesSoAfterJSON(t *testing.T) {
	full := lrp.Settings{Instances: 1, Routes: lrp.Routes{"http": json.RawMessage("1")}, MetricTags: map[string]lrp.MetricTag{"a": {Static: "b"}}, Labels: map[string]string{"a": "b"}}
	d := lrp.Promote(lrp.DesiredLRP{ProcessGUID: "p", Domain: "d", Settings: full, Definition: lrp.Definition{RunInfo: executor.RunInfo{
		RootFS: "host:", Action: executor.Action{Run: &executor.RunAction{Path: "/a", User: "u"}},
	}}}, false)
	var none lrp.Settings
	for name, u := range map[string]lrp.Update{
		"nil": lrp.UpdateSettings(none), "empty": {Routes: &lrp.Routes{}, MetricTags: &map[string]lrp.MetricTag{}, Labels: &map[string]string{}},
	} {
		data, err := json.Marshal(u)
		if err != nil {
			t.Fatal(err)
		}
		var read lrp.Update
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		change, err := d.Update(read)
		if err != nil || len(change.After.Routes)+len(change.After.MetricTags)+len(change.After.Labels) != 0 {
			t.Errorf("%s: after %s the settings are %+v: %v", name, data, change.After, err)
		}
	}
	if data, err := json.Marshal(lrp.Update{}); string(data) != "{}" || err != nil {
		t.Errorf("an update of nothing is %s: %v", data, err)
	}
}

func TestADomainIsWrittenWithItsEndOrWithout(t *testing.T) {
	for want, d := range map[string]lrp.Domain{
		`{"domain":"apps"}`: lrp.NewDomain("apps", 0, epoch),
		`{"domain":"apps","expires_at":"2026-01-01T12:01:00Z"}`: lrp.NewDomain("apps", time.Minute, epoch),
	} {
		data, err := json.Marshal(d)
		if err != nil || string(data) != want {
			t.Errorf("got %s, %v, want %s", data, err, want)
		}
		var back lrp.Domain
		if err := json.Unmarshal(data, &back); err != nil || back != d {
			t.Errorf("got %+v, %v, want %+v", back, err, d)
		}
	}
	if err := json.Unmarshal([]byte(`{"domain": 1}`), new(lrp.Domain)); err == nil {
		t.Error("a number is accepted as a name")
	}
}

func TestTimesThatEarlierReleasesWroteInNanosecondsAreRead(t *testing.T) {
	const old = `{"process_guid":"p","definition_id":"v1","index":15,"domain":"d","instance_guid":"i1","cell_id":"cell-1",` +
		`"address":"10.10.11.11","ports":[{"container_port":8080,"host_port":60001}],"state":"RUNNING","presence":"EVACUATING",` +
		`"crash_count":1,"placement_error":"","routable":true,"modification_tag":{"epoch":"1152921504606846976","index":4},` +
		`"since":1767268860000000007,"running_since":1767268860000000008,"expires_at":1767268860000000009}`
	var r lrp.ActualLRP
	if err := json.Unmarshal([]byte(old), &r); err != nil || r.Validate() != nil {
		t.Fatal(err, r.Validate())
	}
	for i, got := range []time.Time{r.Since, r.RunningSince, r.ExpiresAt} {
		if want := time.Date(2026, 1, 1, 12, 1, 0, 7+i, time.UTC); got != want {
			t.Errorf("read %v, want %v", got, want)
		}
	}
	var d lrp.Domain
	if err := json.Unmarshal([]byte(`{"domain":"apps","expires_at":1767268860000000000}`), &d); err != nil || d.ExpiresAt != time.Date(2026, 1, 1, 12, 1, 0, 0, time.UTC) {
		t.Errorf("read %+v, %v", d, err)
	}
}

func TestEventsSurviveJSON(t *testing.T) {
	l := newLife(t)
	l.do(lrp.CreateMissing{}, lrp.Start{Instance: alpha})
	decision, err := l.try(lrp.Crash{Instance: alpha, Reason: "r"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range decision.Events {
		data, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var back lrp.Event
		if err := json.Unmarshal(data, &back); err != nil || back.Explain() != e.Explain() || back.Kind != e.Kind {
			t.Errorf("got %+v, %v from %s", back, err, data)
		}
	}
}
