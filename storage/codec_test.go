package storage_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

var at = time.Unix(1_800_000_000, 123_456_789).UTC()

// records are ActualLRPs of every shape: together they set every field.
func records() []lrp.ActualLRP {
	key := lrp.Key{ProcessGUID: "p", DefinitionID: "d", Index: 3, Domain: "cf-apps"}
	holder := lrp.InstanceKey{InstanceGUID: "i-1", CellID: "cell-1"}
	tag := lrp.ModificationTag{Epoch: at.UnixNano(), Index: 7}
	running := lrp.ActualLRP{
		Key: key, InstanceKey: holder, State: lrp.Running, Since: at, RunningSince: at, ModificationTag: tag,
		NetInfo: lrp.NetInfo{
			Address: "10.0.0.1", InstanceAddress: "10.1.0.9",
			Ports: []lrp.PortMapping{{ContainerPort: 8080, HostPort: 61001}, {ContainerPort: 65535, HostPort: 1}},
		},
		Routable: true, Zone: "z1",
	}
	preferring := running
	preferring.PreferredAddress = lrp.PreferInstance
	evacuating := running
	evacuating.Presence, evacuating.ExpiresAt = lrp.Evacuating, at.Add(time.Minute)
	suspect := running
	suspect.Presence = lrp.Suspect
	stopping := suspect
	stopping.Stopping = at.Add(time.Second)
	return []lrp.ActualLRP{
		{
			Key: key, State: lrp.Unclaimed, Since: at, ModificationTag: tag,
			PlacementError: lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: "memory: 12 MB short"},
		},
		{Key: key, InstanceKey: holder, State: lrp.Claimed, Since: at, ModificationTag: tag, CrashCount: 2, CrashReason: "exit 137 🙀"},
		running, evacuating, suspect,
		{Key: key, State: lrp.Crashed, Since: at, ModificationTag: tag, CrashCount: 201, CrashReason: "line\x00two"},
		stopping,
		preferring,
	}
}

func TestAnActualLRPSurvivesItsEncoding(t *testing.T) {
	var decoder storage.Decoder
	for _, want := range records() {
		data := storage.AppendActualLRP(nil, &want)
		got := lrp.ActualLRP{Presence: want.Presence}
		got.ProcessGUID, got.DefinitionID, got.Index = want.ProcessGUID, want.DefinitionID, want.Index
		if err := decoder.ActualLRP(data, &got); err != nil {
			t.Fatalf("%v %v: %v", want.State, want.Presence, err)
		}
		if err := storage.DecodeStopping(storage.EncodeStopping(&want), &got); err != nil {
			t.Fatalf("%v %v: %v", want.State, want.Presence, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		for n := range data {
			if err := decoder.ActualLRP(data[:n], &lrp.ActualLRP{Key: want.Key, Presence: want.Presence}); err == nil {
				t.Errorf("%v: the first %d of %d bytes decode", want.State, n, len(data))
			}
		}
		if err := decoder.ActualLRP(append(data, 0), &got); err == nil {
			t.Error("an encoding with a byte too many decodes")
		}
	}
}

// The release before changes a record and leaves its mark as it was. It may be about
// an instance that has ended since.
func TestTheMarkOfAnEarlierInstanceIsLeftOut(t *testing.T) {
	stopping := records()[6]
	data := storage.EncodeStopping(&stopping)
	if stopping.Stopping.IsZero() || len(data) == 0 {
		t.Fatal("the record has no mark")
	}
	for what, change := range map[string]func(*lrp.ActualLRP){
		"another instance":      func(r *lrp.ActualLRP) { r.InstanceGUID = "i-2" },
		"no instance":           func(r *lrp.ActualLRP) { *r = records()[0] },
		"one that is evacuated": func(r *lrp.ActualLRP) { r.Presence, r.ExpiresAt = lrp.Evacuating, at },
	} {
		r := stopping
		change(&r)
		if err := storage.DecodeStopping(data, &r); err != nil || !r.Stopping.IsZero() {
			t.Errorf("%s is to stop since %v, %v", what, r.Stopping, err)
		}
	}
	for n := 1; n < len(data); n++ {
		if err := storage.DecodeStopping(data[:n], &stopping); err == nil {
			t.Errorf("the first %d of %d bytes decode", n, len(data))
		}
	}
	if err := storage.DecodeStopping(append(data, 0), &stopping); err == nil {
		t.Error("a mark with a byte too many decodes")
	}
}

// The release before this one knows neither preferred addresses nor instances that
// are to stop.
func TestOnlyWhatNeedsItGetsANewerEncoding(t *testing.T) {
	rs := records()
	for i := range rs {
		want := byte(2)
		if rs[i].PreferredAddress != lrp.PreferNone {
			want = 3
		}
		if got := storage.AppendActualLRP(nil, &rs[i])[0]; got != want {
			t.Errorf("%+v is written in version %d, want %d", rs[i], got, want)
		}
		if !rs[i].Stopping.IsZero() {
			want = 4 // events only
		}
		unclaimed := rs[0]
		for _, e := range []lrp.Event{{Kind: lrp.InstanceChanged, Before: &unclaimed, After: &rs[i]}, {Kind: lrp.InstanceChanged, Before: &rs[i], After: &unclaimed}} {
			data, err := storage.EncodeEvent(&storage.Event{LRP: &e})
			if err != nil || data[0] != want {
				t.Errorf("an event about %+v is written in version %d, %v, want %d", rs[i], data[0], err, want)
			}
		}
	}
	preferring := &rs[len(rs)-1]
	damaged := storage.AppendActualLRP(nil, preferring)
	damaged[len(damaged)-1] = 9
	if err := new(storage.Decoder).ActualLRP(damaged, &lrp.ActualLRP{Key: preferring.Key}); err == nil {
		t.Error("a preferred address that does not exist decodes")
	}
}

func events() []storage.Event {
	rs := records()
	d := deployment("p")
	other := *d
	other.Instances, other.ModificationTag = 9, d.ModificationTag.Next()
	tk := taskRecord("t")
	again := *tk
	again.CellID, again.ModificationTag = "cell-2", tk.ModificationTag.Next()
	defined := other
	defined.Routes, defined.Definitions = nil, map[string]lrp.Definition{"e": d.Definitions["d"]}
	var out []storage.Event
	for i := range rs {
		cause := lrp.Cause{Command: "Crash", Detail: "exit 1"}
		out = append(out,
			storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceCreated, After: &rs[i], Cause: cause}},
			storage.Event{LRP: &lrp.Event{Kind: lrp.GroupRemoved, Before: &rs[i], Cause: cause}},
			storage.Event{LRP: &lrp.Event{Kind: lrp.InstanceCrashed, Before: &rs[i], After: &rs[(i+1)%len(rs)], Cause: cause}})
	}
	return append(out,
		storage.Event{LRP: &lrp.Event{Kind: lrp.DeploymentChanged, DeploymentBefore: d, DeploymentAfter: &other, Cause: lrp.Cause{Command: "Update"}}},
		storage.Event{LRP: &lrp.Event{Kind: lrp.DesiredChanged, DeploymentBefore: d, DeploymentAfter: &defined, Cause: lrp.Cause{Command: "Update"}}},
		storage.Event{LRP: &lrp.Event{Kind: lrp.DeploymentRemoved, DeploymentBefore: d, Cause: lrp.Cause{Command: "Delete"}}},
		storage.Event{Task: &task.Event{Kind: task.Changed, Before: tk, After: &again, Cause: task.Cause{Command: "Complete"}}},
		storage.Event{Task: &task.Event{Kind: task.Created, After: tk, Cause: task.Cause{Command: "Desire"}}},
		storage.Event{Task: &task.Event{Kind: task.Removed, Before: tk, Cause: task.Cause{Command: "Delete"}}},
		storage.Event{Domain: &storage.DomainEvent{Domain: "cf-apps", TTLNanoseconds: time.Minute}},
		storage.Event{Quarantine: &storage.Quarantine{Key: storage.ActualLRPKey(&rs[0]), Reason: "bits"}},
		storage.Event{Session: session(time.Time{})}, storage.Event{Session: session(at.Add(time.Minute))},
		storage.Event{Gap: &storage.Gap{After: 480, First: 1795348800000000}},
	)
}

func deployment(guid string) *lrp.Deployment {
	return &lrp.Deployment{
		ProcessGUID: guid, Domain: "cf-apps",
		Settings:           lrp.Settings{Instances: 4, Routes: lrp.Routes{"http": []byte(`{"port":8080}`)}},
		Definitions:        map[string]lrp.Definition{"d": {RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/bin/true", User: "vcap"}}}}},
		ActiveDefinitionID: "d",
		ModificationTag:    lrp.ModificationTag{Epoch: at.UnixNano()},
	}
}

func taskRecord(guid string) *task.Task {
	return &task.Task{
		GUID: guid, Domain: "cf-tasks", State: task.Running, CellID: "cell-1", InstanceGUID: "i-2",
		Definition: task.Definition{RunInfo: executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/bin/true", User: "vcap"}}}},
		CreatedAt:  at, UpdatedAt: at.Add(1), ModificationTag: task.ModificationTag{Epoch: at.UnixNano(), Index: 1},
	}
}

func TestAnEventSurvivesItsEncoding(t *testing.T) {
	for _, want := range events() {
		data, err := storage.EncodeEvent(&want)
		if err != nil {
			t.Fatal(err)
		}
		got, err := storage.DecodeEvent(data)
		if err != nil {
			t.Fatalf("%s: %v", want.Subject().Kind, err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
		for n := range data {
			if _, err := storage.DecodeEvent(data[:n]); err == nil {
				t.Errorf("%s: the first %d of %d bytes decode", want.Subject().Kind, n, len(data))
			}
		}
	}
}

// reencoded is an event that was encoded and decoded again.
func reencoded(t *testing.T, e storage.Event) storage.Event {
	t.Helper()
	data, err := storage.EncodeEvent(&e)
	if err != nil {
		t.Fatalf("what decodes does not encode: %v", err)
	}
	again, err := storage.DecodeEvent(data)
	if err != nil {
		t.Fatalf("%s does not decode again: %v", data, err)
	}
	return again
}

func FuzzDecodersRefuseWhatTheyCannotReadWithoutPanic(f *testing.F) {
	for _, e := range events() {
		data, err := storage.EncodeEvent(&e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	for _, r := range records() {
		f.Add(storage.AppendActualLRP(nil, &r))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if e, err := storage.DecodeEvent(data); err == nil {
			once := reencoded(t, e) // an empty map comes back as none
			if twice := reencoded(t, once); !reflect.DeepEqual(once, twice) {
				t.Fatalf("%+v came back as %+v", once, twice)
			}
		}
		var decoder storage.Decoder
		r := lrp.ActualLRP{Key: lrp.Key{ProcessGUID: "p", DefinitionID: "d"}}
		if decoder.ActualLRP(data, &r) == nil {
			again := r
			if err := decoder.ActualLRP(storage.AppendActualLRP(nil, &r), &again); err != nil || !reflect.DeepEqual(r, again) {
				t.Fatalf("%+v came back as %+v, %v", r, again, err)
			}
		}
	})
}

func BenchmarkActualLRPCodec(b *testing.B) {
	r := records()[2]
	data := storage.AppendActualLRP(nil, &r)
	b.Run("encode", func(b *testing.B) {
		for b.Loop() {
			data = storage.AppendActualLRP(data[:0], &r)
		}
	})
	b.Run("decode", func(b *testing.B) {
		var decoder storage.Decoder
		b.ReportAllocs()
		for b.Loop() {
			if err := decoder.ActualLRP(data, &r); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func TestAnEventHasWhatIsTheSameBeforeAndAfterOnce(t *testing.T) {
	d := deployment("p")
	d.Annotation = strings.Repeat("x", 10_000)
	next := *d
	next.HealthyDefinitionID, next.Instances, next.ModificationTag = "d", 9, d.ModificationTag.Next()
	tk := taskRecord("t")
	tk.Annotation = strings.Repeat("x", 10_000)
	again := *tk
	again.ModificationTag = tk.ModificationTag.Next()
	for _, e := range []storage.Event{
		{LRP: &lrp.Event{Kind: lrp.DeploymentChanged, DeploymentBefore: d, DeploymentAfter: &next}},
		{Task: &task.Event{Kind: task.Changed, Before: tk, After: &again}},
	} {
		data, err := storage.EncodeEvent(&e)
		if err != nil || len(data) > 12_000 {
			t.Errorf("%s has %d bytes, %v", e.Subject().Kind, len(data), err)
		}
	}
	if len(d.Definitions) == 0 || d.Annotation == "" || tk.Annotation == "" {
		t.Error("the encoding changes the record")
	}
}

func TestARecordThatBreaksAnInvariantDoesNotDecode(t *testing.T) {
	r := records()[2]
	r.CellID = "" // RUNNING nowhere
	var decoder storage.Decoder
	err := decoder.ActualLRP(storage.AppendActualLRP(nil, &r), &r)
	if !errors.Is(err, lrp.ErrInvariant) {
		t.Errorf("%v, want ErrInvariant", err)
	}
}

// fill sets every field that v leads to.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Pointer:
		if n < 8 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem(), n+1)
		}
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(at.Add(time.Duration(n))))
			return
		}
		for i := range v.NumField() {
			fill(v.Field(i), n+1)
		}
	case reflect.String:
		v.SetString("text")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n) + 5)
	case reflect.Uint8:
		v.SetUint(uint64(task.Resolving))
	}
}

func TestATaskIsDecodedBareAsItIsDecodedWhole(t *testing.T) {
	var whole task.Task
	for i, v := 0, reflect.ValueOf(&whole).Elem(); i < v.NumField(); i++ {
		if name := v.Type().Field(i).Name; name != "Definition" {
			fill(v.Field(i), i)
			if v.Field(i).IsZero() {
				t.Fatalf("%s is zero; set it", name)
			}
		}
	}
	whole.Definition = taskRecord("t").Definition
	whole.Labels = map[string]string{"team": "blog"}
	data, err := storage.Encode(&whole)
	if err != nil {
		t.Fatal(err)
	}
	want := storage.BareTask(&whole)
	want.Labels = whole.Labels
	if got, err := storage.DecodeBareTask(data); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v\nwant %+v", got, err, want)
	}
	for _, damaged := range [][]byte{nil, {1}, {9}, data[:len(data)-1], []byte("\x01{\"state\":\"?\"}")} {
		if _, err := storage.DecodeBareTask(damaged); err == nil {
			t.Errorf("%.20q is decoded", damaged)
		}
	}
}

func TestARecordOfANewerReleaseIsToldFromADamagedOne(t *testing.T) {
	r := records()[2]
	for version, newer := range map[byte]bool{0: false, 1: false, 3: false, 5: true, 9: true, 15: true, 16: false, 99: false} {
		data := storage.AppendActualLRP(nil, &r)
		data[0] = version
		var decoder storage.Decoder
		err := decoder.ActualLRP(data, new(lrp.ActualLRP))
		if err == nil || errors.Is(err, storage.ErrNewer) != newer || newer != strings.Contains(err.Error(), "newer release") {
			t.Errorf("an ActualLRP of version %d: %v", version, err)
		}
		if version == 1 {
			continue // that is JSON
		}
		err = storage.Decode([]byte{version}, &r)
		if err == nil || errors.Is(err, storage.ErrNewer) != newer {
			t.Errorf("JSON of version %d: %v", version, err)
		}
		if _, err = storage.DecodeEvent([]byte{version}); err == nil || errors.Is(err, storage.ErrNewer) != newer {
			t.Errorf("an event of version %d: %v", version, err)
		}
	}
}
