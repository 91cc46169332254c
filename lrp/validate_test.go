package lrp_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
)

// valid is a deployment that every limit is tried on.
func valid() lrp.Deployment {
	return lrp.Deployment{
		ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{Instances: 1},
		Definitions:        map[string]lrp.Definition{"v1": runnable()},
		ActiveDefinitionID: "v1",
	}
}

func TestWhatIsWrongWithADesiredLRPIsNamedAsItWasGiven(t *testing.T) {
	for _, tt := range []struct {
		name   string
		change func(*lrp.DesiredLRP)
		want   string
	}{
		{"nothing", func(*lrp.DesiredLRP) {}, ""},
		{"the root file system", func(l *lrp.DesiredLRP) { l.RootFS = "" }, "root_fs"},
		{"the guid", func(l *lrp.DesiredLRP) { l.ProcessGUID = "" }, "process_guid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			l := lrp.DesiredLRP{ProcessGUID: "p", Domain: "d", Definition: runnable()}
			tt.change(&l)
			_, err := lrp.CreateFrom(l, time.Unix(1, 0))
			var invalid *executor.ValidationError
			if errors.As(err, &invalid) != (tt.want != "") || invalid != nil && (len(invalid.Fields) != 1 || invalid.Fields[0].Field != tt.want) {
				t.Errorf("got %v, want something about %q", err, tt.want)
			}
		})
	}
}

func define(d *lrp.Deployment, change func(*lrp.Definition)) {
	definition := d.Definitions["v1"]
	change(&definition)
	d.Definitions["v1"] = definition
}

// routesOf are routes of n bytes of JSON.
func routesOf(n int) lrp.Routes {
	return lrp.Routes{"a": json.RawMessage(`"` + strings.Repeat("x", n/2-2) + `"`), "b": json.RawMessage(`"` + strings.Repeat("x", n-n/2-2) + `"`)}
}

func definitions(n int) map[string]lrp.Definition {
	out := map[string]lrp.Definition{}
	for i := range n {
		out[fmt.Sprintf("v%d", i+1)] = runnable()
	}
	return out
}

func TestEveryLimitHoldsAtItsEdge(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*lrp.Deployment)
		want   string // the field, the value and the limit; empty if valid
	}{
		{"as it is", func(*lrp.Deployment) {}, ""},
		{"no process guid", func(d *lrp.Deployment) { d.ProcessGUID = "" }, "process_guid: want 1 to 255 letters, digits, - and _"},
		{"process guid with a dot", func(d *lrp.Deployment) { d.ProcessGUID = "a.b" }, "process_guid: a.b: want 1 to 255 letters, digits, - and _"},
		{"longest process guid", func(d *lrp.Deployment) { d.ProcessGUID = strings.Repeat("p", 255) }, ""},
		{"process guid too long", func(d *lrp.Deployment) { d.ProcessGUID = strings.Repeat("p", 256) }, "want 1 to 255 letters"},
		{"no domain", func(d *lrp.Deployment) { d.Domain = "" }, "domain: want 1 to 255 bytes"},
		{"longest domain", func(d *lrp.Deployment) { d.Domain = strings.Repeat("d", 255) }, ""},
		{"domain too long", func(d *lrp.Deployment) { d.Domain = strings.Repeat("d", 256) }, "want 1 to 255 bytes"},
		{"domain with NUL", func(d *lrp.Deployment) { d.Domain = "a\x00" }, "domain: a\x00: want 1 to 255 bytes of UTF-8 without NUL"},
		{"domain that is not UTF-8", func(d *lrp.Deployment) { d.Domain = "\xff" }, "want 1 to 255 bytes of UTF-8"},
		{"unknown strategy", func(d *lrp.Deployment) { d.UpdateStrategy = 2 }, "update_strategy: UpdateStrategy(2): want ROLLING or RECREATE"},
		{"no instances", func(d *lrp.Deployment) { d.Instances = 0 }, ""},
		{"negative instances", func(d *lrp.Deployment) { d.Instances = -1 }, "instances: -1: want 0 to 100000"},
		{"most instances", func(d *lrp.Deployment) { d.Instances = lrp.MaxInstances }, ""},
		{"too many instances", func(d *lrp.Deployment) { d.Instances = lrp.MaxInstances + 1 }, "instances: 100001: want 0 to 100000"},
		{"largest annotation", func(d *lrp.Deployment) { d.Annotation = strings.Repeat("a", 10240) }, ""},
		{"annotation too large", func(d *lrp.Deployment) { d.Annotation = strings.Repeat("a", 10241) }, "annotation: 10241 bytes: want at most 10240 bytes"},
		{"largest routes", func(d *lrp.Deployment) { d.Routes = routesOf(131072) }, ""},
		{"routes too large", func(d *lrp.Deployment) { d.Routes = routesOf(131073) }, "routes: 131073 bytes: want at most 131072 bytes in all"},
		{"routes that are not JSON", func(d *lrp.Deployment) { d.Routes = lrp.Routes{"cf-router": json.RawMessage(`{`)} }, "routes.cf-router: {: want JSON"},
		{"routes for a router without a name", func(d *lrp.Deployment) { d.Routes = lrp.Routes{"": json.RawMessage(`1`)} }, "routes: want 1 to 255 bytes"},
		{"a metric tag that is static and dynamic", func(d *lrp.Deployment) {
			d.MetricTags = map[string]lrp.MetricTag{"a": {Static: "s", Dynamic: "INDEX"}}
		}, "metric_tags.a.static: s: want exactly one of static and dynamic"},
		{"an unknown dynamic tag", func(d *lrp.Deployment) { d.MetricTags = map[string]lrp.MetricTag{"a": {Dynamic: "CELL"}} }, "metric_tags.a.dynamic: CELL: want INDEX or INSTANCE_GUID"},
		{"metrics without their source id", func(d *lrp.Deployment) {
			d.MetricTags = map[string]lrp.MetricTag{"a": {Static: "s"}}
			define(d, func(d *lrp.Definition) { d.MetricsGUID = "m" })
		}, "metric_tags.source_id: want the static tag m"},
		{"metrics with their source id", func(d *lrp.Deployment) {
			d.MetricTags = map[string]lrp.MetricTag{"source_id": {Static: "m"}}
			define(d, func(d *lrp.Definition) { d.MetricsGUID = "m" })
		}, ""},
		{"a user without a password", func(d *lrp.Deployment) { d.ImageUsername = "u" }, "image_username: u: want set together with image_password, or not at all"},
		{"a password without a user", func(d *lrp.Deployment) { d.ImagePassword = "p" }, "image_username: want set together with image_password"},
		{"a user with a password", func(d *lrp.Deployment) { d.ImageUsername, d.ImagePassword = "u", "p" }, ""},
		{"an unknown active definition", func(d *lrp.Deployment) { d.ActiveDefinitionID = "v2" }, "active_definition_id: v2: want the id of a definition"},
		{"an unknown healthy definition", func(d *lrp.Deployment) { d.HealthyDefinitionID = "v2" }, "healthy_definition_id: v2: want the id of a definition, or empty"},
		{"a definition id too long", func(d *lrp.Deployment) { d.Definitions[strings.Repeat("v", 256)] = runnable() }, "definition_id: vvvv"},
		{"an empty definition id", func(d *lrp.Deployment) { d.Definitions[""] = runnable() }, "definition_id: want 1 to 255 bytes"},
		{"most definitions", func(d *lrp.Deployment) { d.Definitions = definitions(lrp.MaxDefinitions) }, ""},
		{"too many definitions", func(d *lrp.Deployment) { d.Definitions = definitions(lrp.MaxDefinitions + 1) }, "definitions: 17: want at most 16"},
		{"negative memory", func(d *lrp.Deployment) { define(d, func(d *lrp.Definition) { d.MemoryMB = -1 }) }, "definitions.v1.memory_mb: -1: want at least 0"},
		{"negative disk", func(d *lrp.Deployment) { define(d, func(d *lrp.Definition) { d.DiskMB = -1 }) }, "definitions.v1.disk_mb: -1: want at least 0"},
		{"a root file system without a scheme", func(d *lrp.Deployment) { define(d, func(d *lrp.Definition) { d.RootFS = "linux" }) }, "definitions.v1.root_fs: linux: want a URL with a scheme"},
		{"no action", func(d *lrp.Deployment) { define(d, func(d *lrp.Definition) { d.Action = executor.Action{} }) }, "definitions.v1.action"},
		{"longest placement tag", func(d *lrp.Deployment) {
			define(d, func(d *lrp.Definition) { d.PlacementTags = []string{strings.Repeat("t", 255)} })
		}, ""},
		{"an empty placement tag", func(d *lrp.Deployment) { define(d, func(d *lrp.Definition) { d.PlacementTags = []string{"a", ""} }) }, "definitions.v1.placement_tags[1]: want 1 to 255 bytes"},
		{"a placement tag too long", func(d *lrp.Deployment) {
			define(d, func(d *lrp.Definition) { d.PlacementTags = []string{strings.Repeat("t", 256)} })
		}, "definitions.v1.placement_tags[0]: tttt"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := valid()
			c.change(&d)
			deployment, desired := d.Validate(), error(nil)
			if known := d.Definitions[d.ActiveDefinitionID].RootFS != ""; known {
				projection := d.Project()
				desired = projection.Validate()
			}
			if c.want == "" {
				if deployment != nil || desired != nil {
					t.Errorf("got %v, %v", deployment, desired)
				}
				return
			}
			var invalid *executor.ValidationError
			if !errors.As(deployment, &invalid) || !errors.Is(deployment, executor.ErrInvalid) {
				t.Fatalf("got %v", deployment)
			}
			if !strings.Contains(deployment.Error(), c.want) {
				t.Errorf("got %q, want %q", deployment, c.want)
			}
			if len(deployment.Error()) > 500 {
				t.Errorf("the error is %d bytes long", len(deployment.Error()))
			}
			if desired != nil && !errors.Is(desired, executor.ErrInvalid) {
				t.Errorf("got %v", desired)
			}
		})
	}
}

func TestADefinitionAndItsIDComeTogether(t *testing.T) {
	d := valid()
	id, definition := "v2", runnable()
	for name, u := range map[string]lrp.Update{"an id alone": {DefinitionID: &id}, "a definition alone": {Definition: &definition}} {
		t.Run(name, func(t *testing.T) {
			_, err := d.Update(u)
			var refused *lrp.RefusedError
			if !errors.As(err, &refused) || !errors.Is(err, lrp.ErrRefused) || !strings.Contains(err.Error(), "come together") {
				t.Errorf("got %v", err)
			}
		})
	}
	if change, err := d.Update(lrp.Update{}); err != nil || !change.IsZero() {
		t.Errorf("an empty update: %+v, %v", change, err)
	}
	d.Definitions = definitions(lrp.MaxDefinitions)
	id = "v99"
	if _, err := d.Update(lrp.Update{DefinitionID: &id, Definition: &definition}); !errors.Is(err, lrp.ErrRefused) {
		t.Errorf("one definition too many: %v", err)
	}
}

func TestCreateAndDesireRefuseWhatIsInvalid(t *testing.T) {
	if _, err := lrp.Create(lrp.DeploymentDefinition{}, epoch); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if _, err := lrp.CreateFrom(lrp.DesiredLRP{}, epoch); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// A definition that an earlier release took, and that is invalid now, can be replaced.
func TestADeploymentOfAnInvalidDefinitionCanBeChanged(t *testing.T) {
	d := valid()
	define(&d, func(l *lrp.Definition) { l.Ports = make([]uint16, executor.MaxPorts+1) })
	d.ModificationTag = lrp.ModificationTag{Epoch: 1}
	three, id, good := 3, "v2", runnable()
	change, err := d.Update(lrp.Update{Instances: &three})
	if err != nil || change.After.Instances != 3 {
		t.Fatalf("scaling: %v", err)
	}
	change, err = change.After.Update(lrp.Update{DefinitionID: &id, Definition: &good})
	if err != nil || change.After.ActiveDefinitionID != id {
		t.Fatalf("a valid definition: %v", err)
	}
	id = "v3"
	bad := d.Definitions["v1"]
	if _, err := change.After.Update(lrp.Update{DefinitionID: &id, Definition: &bad}); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("the same again: %v", err)
	}
}

// What is stored may be larger, since an earlier release took it.
func TestOnlyWhatIsNewMustNotBeLarge(t *testing.T) {
	large := runnable()
	large.Action.Run.Args = []string{strings.Repeat("x", executor.MaxDefinitionBytes)}
	files := runnable()
	files.VolumeMountedFiles = []executor.File{{Path: "f", Content: strings.Repeat("x", executor.MaxFilesBytes)}}
	escaped, tagged := runnable(), runnable()
	escaped.VolumeMountedFiles = []executor.File{{Path: "f", Content: strings.Repeat("<", executor.MaxFilesBytes/3)}}
	tagged.PlacementTags = []string{"a", "a"}
	desire := func(d lrp.Definition) error {
		_, err := lrp.CreateFrom(lrp.DesiredLRP{ProcessGUID: "p", Domain: "d", Definition: d}, epoch)
		return err
	}
	update := func(d lrp.Definition) error {
		stored, id := valid(), "v2"
		stored.Definitions["v1"] = large
		_, err := stored.Update(lrp.Update{DefinitionID: &id, Definition: &d})
		return err
	}
	text := strings.Repeat("x", executor.MaxDefinitionBytes)
	tags := map[string]executor.MetricTag{"a": {Static: text}}
	for _, u := range []lrp.Update{{MetricTags: &tags}, {ImageUsername: &text, ImagePassword: &text}} {
		stored := valid()
		if _, err := stored.Update(u); !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("settings: %v", err)
		}
	}
	if _, err := lrp.CreateFrom(lrp.DesiredLRP{ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{MetricTags: tags}, Definition: runnable()}, epoch); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("settings of a new one: %v", err)
	}
	for name, try := range map[string]func(lrp.Definition) error{"desired": desire, "updated": update} {
		if err := try(large); err == nil || !strings.Contains(err.Error(), "want at most 262144 bytes as JSON, beside files") {
			t.Errorf("%s: %v", name, err)
		}
		if err := try(escaped); err == nil || !strings.Contains(err.Error(), "volume_mounted_files: 2097177 bytes: want at most 1572864 bytes as JSON") {
			t.Errorf("%s: %v", name, err)
		}
		if err := try(tagged); err == nil || !strings.Contains(err.Error(), "placement_tags[1]: a: want a tag that the list does not have yet") {
			t.Errorf("%s: %v", name, err)
		}
		for _, d := range []lrp.Definition{files, runnable()} {
			if err := try(d); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	for name, d := range map[string]lrp.Definition{"large": large, "escaped": escaped, "tagged": tagged} {
		three, stored := 3, valid()
		stored.Definitions["v1"] = d
		if err := stored.Validate(); err != nil {
			t.Errorf("%s, stored: %v", name, err)
		}
		if _, err := stored.Update(lrp.Update{Instances: &three}); err != nil {
			t.Errorf("%s, scaled: %v", name, err)
		}
	}
}

func TestNewRoutesAreMeasuredWithTheNamesOfTheirRoutersAndWithEscapes(t *testing.T) {
	many := lrp.Routes{}
	for i := range 1000 {
		many[fmt.Sprintf("%0255d", i)] = json.RawMessage("1")
	}
	escaped := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("<", n) + `"`) }
	for name, tt := range map[string]struct {
		routes lrp.Routes
		want   string
	}{
		"the largest": {routesOf(lrp.MaxRoutesBytes - len(`{"a":,"b":}`)), ""},
		"larger":      {routesOf(lrp.MaxRoutesBytes - 10), "routes: 131073 bytes: want at most 131072 bytes as JSON, together with the names of the routers"},
		"many names":  {many, "routes: 260001 bytes: want at most 131072 bytes as JSON, together with the names of the routers"},
		"escapes":     {lrp.Routes{"a": escaped(20_000)}, ""},
		"many escapes": {lrp.Routes{"a": escaped(30_000)},
			"routes: 180008 bytes: want at most 131072 bytes as JSON, together with the names of the routers"},
	} {
		stored := valid()
		_, updated := stored.Update(lrp.Update{Routes: &tt.routes})
		_, created := lrp.CreateFrom(lrp.DesiredLRP{ProcessGUID: "p", Domain: "d", Settings: lrp.Settings{Routes: tt.routes}, Definition: runnable()}, epoch)
		for call, err := range map[string]error{"updated": updated, "created": created} {
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, %s: got %v, want %q", name, call, err, tt.want)
			}
		}
		three := 3
		stored.Routes = tt.routes
		if text, err := json.Marshal(tt.routes); err != nil || tt.want == "" && json.Unmarshal(text, &stored.Routes) != nil {
			t.Fatal(err)
		}
		if _, err := stored.Update(lrp.Update{Instances: &three}); err != nil {
			t.Errorf("%s, scaled: %v", name, err)
		}
	}
}

// No reader could pass an event, or an item of a list, that is larger than the answer that
// clients take.
func TestTheLargestDeploymentAndItsEventsFitIntoAnAnswer(t *testing.T) {
	const maxAnswer = 64 << 20 // httpapi.ClientOptions.MaxAnswerBytes
	name := func(i int) string { return fmt.Sprintf("%02d", i) + strings.Repeat("<", lrp.MaxNameBytes-2) }
	definition := runnable()
	definition.VolumeMountedFiles = []executor.File{{Path: "f", Content: strings.Repeat("<", (executor.MaxFilesJSONBytes-40)/6)}}
	routes := lrp.Routes{"r": json.RawMessage(`"` + strings.Repeat("<", (lrp.MaxRoutesBytes-20)/6) + `"`)}
	annotation, labels := strings.Repeat("<", executor.MaxAnnotationBytes), map[string]string{}
	for i := range executor.MaxLabels {
		labels[fmt.Sprintf("%0*d", executor.MaxLabelBytes, i)] = strings.Repeat("x", executor.MaxLabelBytes)
	}
	d := lrp.DeploymentDefinition{ProcessGUID: strings.Repeat("p", executor.MaxGUIDBytes), Domain: name(0), DefinitionID: name(0), Definition: definition}
	// What is left of the size of a definition goes into a text of it.
	d.Definition.Action.Run = &executor.RunAction{Path: "/app", User: "vcap", Args: []string{strings.Repeat("<", (executor.MaxDefinitionBytes-2000)/6)}}
	change, err := lrp.Create(d, epoch)
	if err != nil {
		t.Fatal(err)
	}
	for i := range lrp.MaxDefinitions - 1 {
		id := name(i + 1)
		change, err = change.After.Update(lrp.Update{DefinitionID: &id, Definition: &d.Definition})
		if err != nil {
			t.Fatal(err)
		}
	}
	// Settings may become as large as a definition once it is stored.
	tags := map[string]executor.MetricTag{"a": {Static: strings.Repeat("<", (executor.MaxDefinitionBytes-80_000)/6)}}
	change, err = change.After.Update(lrp.Update{MetricTags: &tags, Annotation: &annotation, Labels: &labels, Routes: &routes})
	if err != nil {
		t.Fatal(err)
	}
	change, err = change.After.Update(lrp.Update{Instances: new(int)})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(change.After.Definitions); n != lrp.MaxDefinitions {
		t.Errorf("it has %d definitions", n)
	}
	size := func(v any) int {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return len(text)
	}
	// Beside its definitions a deployment has less than 1 MiB: settings, routes and names.
	const most = lrp.MaxDefinitions*(executor.MaxDefinitionBytes+executor.MaxFilesJSONBytes) + 1<<20
	if n := size(change.After); n > most || n < most-2<<20 {
		t.Errorf("the deployment has %d bytes, want nearly %d", n, most)
	}
	for _, e := range change.Events {
		if n := size(e); n > 2*most || 2*most > maxAnswer-1<<20 {
			t.Errorf("the event %v has %d bytes", e.Kind, n)
		}
	}
}

func TestAnUpdateChangesWhatItNamesAndNothingElse(t *testing.T) {
	d := valid()
	d.ImageUsername, d.ImagePassword = "u", "p"
	var u lrp.Update
	if err := json.Unmarshal([]byte(`{"instances": 7, "routes": {"r": [1]}, "annotation": "a", "labels": {"team": "blog"}, "metric_tags": {"t": {"static": "s"}},
		"image_username": "", "image_password": ""}`), &u); err != nil {
		t.Fatal(err)
	}
	change, err := d.Update(u)
	if err != nil {
		t.Fatal(err)
	}
	got := change.After
	if got.Instances != 7 || string(got.Routes["r"]) != "[1]" || got.Annotation != "a" || got.Labels["team"] != "blog" || got.MetricTags["t"].Static != "s" ||
		got.ImageUsername != "" || got.ImagePassword != "" || got.ActiveDefinitionID != "v1" {
		t.Errorf("got %+v", got)
	}
	// Labels say nothing about what runs, and stay if the update does not name them.
	if len(got.Definitions) != 1 || got.ActiveDefinitionID != d.ActiveDefinitionID {
		t.Errorf("it begins a rollout: %+v", got)
	}
	n := 8
	if again, err := got.Update(lrp.Update{Instances: &n}); err != nil || again.After.Labels["team"] != "blog" {
		t.Errorf("after another update the labels are %v: %v", again.After.Labels, err)
	}
	if got.ModificationTag != d.ModificationTag.Next() || change.Before != &d || d.Instances != 1 {
		t.Errorf("the tag is %v", got.ModificationTag)
	}
}

func TestAnUpdateToADesiredLRPIsARolloutToItsDefinition(t *testing.T) {
	d := valid()
	want := d.Project()
	want.Instances, want.Annotation, want.MemoryMB = 3, "new", 512
	want.ImageUsername, want.ImagePassword = "u", "p"
	want.Routes = lrp.Routes{"r": json.RawMessage(`1`)}
	want.MetricTags = map[string]lrp.MetricTag{"t": {Static: "s"}}
	change, err := d.UpdateTo(want, "v2")
	if err != nil {
		t.Fatal(err)
	}
	want.ModificationTag = d.ModificationTag.Next()
	if diff := cmp.Diff(want, change.After.Project()); diff != "" {
		t.Error(diff)
	}
	if ids := change.After.DefinitionIDs(); !slices.Equal(ids, []string{"v1", "v2"}) || change.After.ActiveDefinitionID != "v2" {
		t.Errorf("definitions %q, active %q", ids, change.After.ActiveDefinitionID)
	}
	for name, wrong := range map[string]func(*lrp.DesiredLRP){
		"process guid": func(l *lrp.DesiredLRP) { l.ProcessGUID = "q" },
		"domain":       func(l *lrp.DesiredLRP) { l.Domain = "q" },
		"strategy":     func(l *lrp.DesiredLRP) { l.UpdateStrategy = lrp.Recreate },
	} {
		l := d.Project()
		wrong(&l)
		if _, err := d.UpdateTo(l, "v2"); !errors.Is(err, lrp.ErrRefused) {
			t.Errorf("another %s: %v", name, err)
		}
	}
	if _, err := d.UpdateTo(d.Project(), "v1"); !errors.Is(err, lrp.ErrRefused) {
		t.Errorf("a definition id that is taken: %v", err)
	}
}

func TestAnUpdateRefusesWhatCannotBeUpdatedByName(t *testing.T) {
	for _, member := range []string{
		"process_guid", "domain", "root_fs", "memory_mb", "disk_mb", "action", "ports", "env", "update_strategy",
		"modification_tag", "Instances", "instance",
	} {
		var u lrp.Update
		err := json.Unmarshal([]byte(`{"instances": 1, "`+member+`": null}`), &u)
		if !errors.Is(err, executor.ErrInvalid) || !strings.Contains(err.Error(), member+": want a member that can be updated") {
			t.Errorf("%s: %v", member, err)
		}
	}
	for _, text := range []string{`[]`, `{"instances": "1"}`, `{"instances": 1.5}`, `{"routes": 1}`} {
		if err := json.Unmarshal([]byte(text), new(lrp.Update)); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

func TestPlacementErrorsAreTheirText(t *testing.T) {
	for _, c := range []struct {
		e    lrp.PlacementError
		text string
	}{
		{lrp.PlacementError{}, ""},
		{lrp.PlacementError{Reason: lrp.NoCompatibleCells}, "found no compatible cells"},
		{lrp.PlacementError{Reason: lrp.InsufficientResources}, "insufficient resources"},
		{lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: "memory: 3 of 4 cells"}, "insufficient resources: memory: 3 of 4 cells"},
		{lrp.PlacementError{Reason: lrp.CellsUnreachable}, "no cell answered"},
		{lrp.PlacementError{Reason: lrp.TooManyStarting}, "too many instances are starting"},
		{lrp.PlacementError{Reason: lrp.RejectedByCell, Detail: "cell-1"}, "rejected by the cell: cell-1"},
	} {
		if got := c.e.String(); got != c.text {
			t.Errorf("got %q, want %q", got, c.text)
		}
		if text, err := c.e.MarshalText(); err != nil || string(text) != c.text {
			t.Errorf("got %q, %v", text, err)
		}
		var back lrp.PlacementError
		if err := back.UnmarshalText([]byte(c.text)); err != nil || back != c.e {
			t.Errorf("%q: got %+v, %v", c.text, back, err)
		}
		if c.e.IsZero() != (c.text == "") {
			t.Errorf("%q: zero is %v", c.text, c.e.IsZero())
		}
	}
	if _, err := lrp.ParsePlacementError("bad luck: today"); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if _, err := (lrp.PlacementError{Reason: 99}).MarshalText(); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	if err := new(lrp.PlacementError).UnmarshalText([]byte("x")); err == nil {
		t.Error("x is accepted")
	}
}

func TestALongReasonIsCut(t *testing.T) {
	l := newLife(t)
	l.do(lrp.CreateMissing{}, lrp.Fail{Error: lrp.PlacementError{Reason: lrp.InsufficientResources, Detail: strings.Repeat("é", 1024)}})
	if text := l.slot.Records[0].PlacementError.String(); len(text) > 1024 || !strings.HasSuffix(text, " (cut)") || !strings.HasPrefix(text, "insufficient resources: é") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	l.do(lrp.Claim{Instance: alpha}, lrp.Crash{Instance: alpha, Reason: strings.Repeat("é", 1024)})
	if text := l.slot.Records[0].CrashReason; len(text) > 1024 || !strings.HasSuffix(text, " (cut)") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

type text interface {
	fmt.Stringer
	MarshalText() ([]byte, error)
}

func TestEnumsAreTheSpecificationsWords(t *testing.T) {
	for _, c := range []struct {
		value text
		parse func([]byte) (text, error)
		want  string
	}{
		{lrp.Unclaimed, parse[lrp.State], "UNCLAIMED"},
		{lrp.Claimed, parse[lrp.State], "CLAIMED"},
		{lrp.Running, parse[lrp.State], "RUNNING"},
		{lrp.Crashed, parse[lrp.State], "CRASHED"},
		{lrp.Ordinary, parse[lrp.Presence], "ORDINARY"},
		{lrp.Evacuating, parse[lrp.Presence], "EVACUATING"},
		{lrp.Suspect, parse[lrp.Presence], "SUSPECT"},
		{lrp.Rolling, parse[lrp.UpdateStrategy], "ROLLING"},
		{lrp.Recreate, parse[lrp.UpdateStrategy], "RECREATE"},
		{lrp.InstanceCreated, parse[lrp.EventKind], "actual_lrp_instance_created"},
		{lrp.InstanceChanged, parse[lrp.EventKind], "actual_lrp_instance_changed"},
		{lrp.InstanceRemoved, parse[lrp.EventKind], "actual_lrp_instance_removed"},
		{lrp.InstanceCrashed, parse[lrp.EventKind], "actual_lrp_crashed"},
		{lrp.GroupCreated, parse[lrp.EventKind], "actual_lrp_created"},
		{lrp.GroupChanged, parse[lrp.EventKind], "actual_lrp_changed"},
		{lrp.GroupRemoved, parse[lrp.EventKind], "actual_lrp_removed"},
		{lrp.DeploymentCreated, parse[lrp.EventKind], "lrp_deployment_created"},
		{lrp.DeploymentChanged, parse[lrp.EventKind], "lrp_deployment_changed"},
		{lrp.DeploymentRemoved, parse[lrp.EventKind], "lrp_deployment_removed"},
		{lrp.DesiredCreated, parse[lrp.EventKind], "desired_lrp_created"},
		{lrp.DesiredChanged, parse[lrp.EventKind], "desired_lrp_changed"},
		{lrp.DesiredRemoved, parse[lrp.EventKind], "desired_lrp_removed"},
	} {
		t.Run(c.want, func(t *testing.T) {
			text, err := c.value.MarshalText()
			if c.value.String() != c.want || string(text) != c.want || err != nil {
				t.Errorf("got %v, %s, %v", c.value, text, err)
			}
			if back, err := c.parse([]byte(c.want)); err != nil || back != c.value {
				t.Errorf("got %v, %v", back, err)
			}
			for _, wrong := range []string{"", strings.ToLower(c.want) + "x", " " + c.want} {
				if _, err := c.parse([]byte(wrong)); !errors.Is(err, executor.ErrInvalid) {
					t.Errorf("%q: %v", wrong, err)
				}
			}
		})
	}
	for _, unknown := range []text{lrp.State(0), lrp.State(5), lrp.Presence(3), lrp.UpdateStrategy(2), lrp.EventKind(0), lrp.EventKind(99)} {
		if _, err := unknown.MarshalText(); !errors.Is(err, executor.ErrInvalid) || !strings.HasSuffix(unknown.String(), ")") {
			t.Errorf("%v: %v", unknown, err)
		}
	}
	for kind, want := range map[lrp.EffectKind]string{lrp.RequestStart: "RequestStart", lrp.StopInstance: "StopInstance", lrp.ContinueRollout: "ContinueRollout", 0: "EffectKind(0)"} {
		if kind.String() != want {
			t.Errorf("got %v, want %s", kind, want)
		}
	}
	if lrp.PlacementReason(99).String() != "PlacementReason(99)" {
		t.Error(lrp.PlacementReason(99))
	}
}

func parse[T text, P interface {
	*T
	UnmarshalText([]byte) error
}](b []byte) (text, error) {
	var v T
	err := P(&v).UnmarshalText(b)
	return v, err
}

func TestEachInvariantIsChecked(t *testing.T) {
	good := func() lrp.ActualLRP {
		return lrp.ActualLRP{
			Key:         lrp.Key{ProcessGUID: "p", DefinitionID: "v1", Domain: "d"},
			InstanceKey: alpha, NetInfo: lrp.NetInfo{Address: "a"}, State: lrp.Running, Routable: true,
			Since: epoch, RunningSince: epoch, ModificationTag: lrp.ModificationTag{Epoch: 1},
		}
	}
	record := good()
	if err := record.Validate(); err != nil {
		t.Fatal(err)
	}
	unclaimed := func(r *lrp.ActualLRP) {
		*r = lrp.ActualLRP{Key: r.Key, State: lrp.Unclaimed, Since: epoch, ModificationTag: r.ModificationTag}
	}
	for _, c := range []struct {
		change func(*lrp.ActualLRP)
		rule   string
	}{
		{func(r *lrp.ActualLRP) { r.ProcessGUID = "" }, "process guid"},
		{func(r *lrp.ActualLRP) { r.DefinitionID = "" }, "definition id"},
		{func(r *lrp.ActualLRP) { r.Domain = "" }, "domain"},
		{func(r *lrp.ActualLRP) { r.Index = -1 }, "an index is at least 0"},
		{func(r *lrp.ActualLRP) { r.State = 0 }, "a state is"},
		{func(r *lrp.ActualLRP) { r.State = 5 }, "a state is"},
		{func(r *lrp.ActualLRP) { r.Presence = 3 }, "a presence is"},
		{func(r *lrp.ActualLRP) { r.InstanceGUID = "" }, "has an instance guid and a cell"},
		{func(r *lrp.ActualLRP) { r.CellID = "" }, "has an instance guid and a cell"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.InstanceKey = alpha }, "on no cell"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.State = lrp.Crashed; r.CellID = "c" }, "on no cell"},
		{func(r *lrp.ActualLRP) {
			unclaimed(r)
			r.State, r.InstanceKey, r.Presence = lrp.Claimed, alpha, lrp.Evacuating
		}, "an EVACUATING record is RUNNING"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.Presence = lrp.Suspect }, "a SUSPECT record is"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.Address = "a" }, "addresses"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.InstanceAddress = "a" }, "addresses"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.Ports = []lrp.PortMapping{{}} }, "addresses"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.Routable = true }, "routable"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.Zone = "z" }, "zone"},
		{func(r *lrp.ActualLRP) { r.RunningSince = time.Time{} }, "running since"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.RunningSince = epoch }, "running since"},
		{func(r *lrp.ActualLRP) { r.Presence = lrp.Evacuating }, "expires"},
		{func(r *lrp.ActualLRP) { r.ExpiresAt = epoch }, "expires"},
		{func(r *lrp.ActualLRP) { r.PlacementError.Reason = lrp.CellsUnreachable }, "only an UNCLAIMED record"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.PlacementError.Reason = 99 }, "known reason"},
		{func(r *lrp.ActualLRP) { unclaimed(r); r.PlacementError.Detail = "x" }, "known reason"},
		{func(r *lrp.ActualLRP) { r.CrashCount = -1 }, "crash count"},
		{func(r *lrp.ActualLRP) { r.Since = time.Time{} }, "since some time"},
		{func(r *lrp.ActualLRP) { r.ModificationTag = lrp.ModificationTag{} }, "modification tag"},
	} {
		r := good()
		c.change(&r)
		err := r.Validate()
		var invariant *lrp.InvariantError
		if !errors.As(err, &invariant) || !errors.Is(err, lrp.ErrInvariant) || !strings.Contains(err.Error(), c.rule) {
			t.Errorf("want %q, got %v", c.rule, err)
		}
		slot := lrp.Slot{ProcessGUID: "p", Records: []lrp.ActualLRP{r}}
		if _, err := lrp.Step(slot, nil, lrp.CreateMissing{}, epoch, lrp.Policy{}); !errors.Is(err, lrp.ErrInvariant) {
			t.Errorf("%q: Step decides about it: %v", c.rule, err)
		}
	}
	other := good()
	other.DefinitionID, other.ModificationTag.Epoch = "v2", 2
	for name, s := range map[string]lrp.Slot{
		"another process":     {ProcessGUID: "q", Records: []lrp.ActualLRP{record}},
		"another index":       {ProcessGUID: "p", Index: 1, Records: []lrp.ActualLRP{record}},
		"no process":          {},
		"a negative index":    {ProcessGUID: "p", Index: -1},
		"the wrong order":     {ProcessGUID: "p", Records: []lrp.ActualLRP{other, record}},
		"a record twice":      {ProcessGUID: "p", Records: []lrp.ActualLRP{record, record}},
		"one epoch for both":  {ProcessGUID: "p", Records: []lrp.ActualLRP{record, func() lrp.ActualLRP { r := other; r.ModificationTag.Epoch = 1; return r }()}},
		"two at the same key": {ProcessGUID: "p", Records: []lrp.ActualLRP{record, func() lrp.ActualLRP { r := record; r.ModificationTag.Epoch = 2; return r }()}},
	} {
		if err := s.Validate(); !errors.Is(err, lrp.ErrInvariant) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (lrp.Slot{ProcessGUID: "p", Records: []lrp.ActualLRP{record, other}}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestStepRefusesOddInput(t *testing.T) {
	d := valid()
	change := func(f func(*lrp.Deployment)) *lrp.Deployment { d := valid(); f(&d); return &d }
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		name    string
		d       *lrp.Deployment
		command lrp.Command
		now     time.Time
		want    error
	}{
		{"no command", &d, nil, epoch, executor.ErrInvalid},
		{"a pointer to a command", &d, &lrp.CreateMissing{}, epoch, executor.ErrInvalid},
		{"a nil pointer to a command", &d, (*lrp.Claim)(nil), epoch, executor.ErrInvalid},
		{"a command of one's own", &d, struct{ lrp.Command }{lrp.CreateMissing{}}, epoch, executor.ErrInvalid},
		{"no time", &d, lrp.CreateMissing{}, time.Time{}, executor.ErrInvalid},
		{"the time that stands for none", &d, lrp.CreateMissing{}, time.Unix(0, 0), executor.ErrInvalid},
		{"a time that no tag holds", &d, lrp.CreateMissing{}, time.Unix(1<<40, 0), executor.ErrInvalid},
		{"another process's deployment", change(func(d *lrp.Deployment) { d.ProcessGUID = "q" }), lrp.CreateMissing{}, epoch, lrp.ErrInvariant},
		{"a deployment without a domain", change(func(d *lrp.Deployment) { d.Domain = "" }), lrp.CreateMissing{}, epoch, lrp.ErrInvariant},
		{"a deployment without its active definition", change(func(d *lrp.Deployment) { d.ActiveDefinitionID = "v2" }), lrp.CreateMissing{}, epoch, lrp.ErrInvariant},
		{"a deployment without its healthy definition", change(func(d *lrp.Deployment) { d.HealthyDefinitionID = "v2" }), lrp.CreateMissing{}, epoch, lrp.ErrInvariant},
		{"a cell that does not say who it is", &d, lrp.Claim{Instance: lrp.InstanceKey{InstanceGUID: "i"}}, epoch, executor.ErrInvalid},
		{"an instance without a guid", &d, lrp.Crash{Instance: lrp.InstanceKey{CellID: "c"}}, epoch, executor.ErrInvalid},
		{"an instance guid too long", &d, lrp.Start{Instance: lrp.InstanceKey{InstanceGUID: long, CellID: "c"}}, epoch, executor.ErrInvalid},
		{"a remove by nobody", &d, lrp.Remove{}, epoch, executor.ErrInvalid},
		{"an evacuation by nobody", &d, lrp.EvacuateRunning{}, epoch, executor.ErrInvalid},
		{"an evacuation of nobody claimed", &d, lrp.EvacuateClaimed{}, epoch, executor.ErrInvalid},
		{"an evacuation of nobody stopped", &d, lrp.EvacuateStopped{}, epoch, executor.ErrInvalid},
		{"an evacuation of nobody crashed", &d, lrp.EvacuateCrashed{}, epoch, executor.ErrInvalid},
		{"a removal of nobody evacuating", &d, lrp.RemoveEvacuating{}, epoch, executor.ErrInvalid},
		{"a start in too long a zone", &d, lrp.Start{Instance: alpha, Zone: long}, epoch, executor.ErrInvalid},
		{"an evacuation from too long an address", &d, lrp.EvacuateRunning{Instance: alpha, NetInfo: lrp.NetInfo{Address: long}}, epoch, executor.ErrInvalid},
		{"a start without a domain", nil, lrp.Start{Instance: alpha, DefinitionID: "v1"}, epoch, executor.ErrInvalid},
		{"a start of too long a definition", nil, lrp.Start{Instance: alpha, DefinitionID: long, Domain: "d"}, epoch, executor.ErrInvalid},
		{"a failure without a reason", &d, lrp.Fail{}, epoch, executor.ErrInvalid},
		{"a failure for an unknown reason", &d, lrp.Fail{Error: lrp.PlacementError{Reason: 99}}, epoch, executor.ErrInvalid},
		{"a claim of nothing", &d, lrp.Claim{Instance: alpha}, epoch, lrp.ErrNotFound},
		{"a removal of nothing", &d, lrp.Remove{Instance: alpha}, epoch, lrp.ErrCannotBeRemoved},
		{"a retirement of nothing", &d, lrp.Retire{}, epoch, lrp.ErrNotFound},
		{"a failure of nothing", &d, lrp.Fail{Error: lrp.PlacementError{Reason: lrp.CellsUnreachable}}, epoch, lrp.ErrCannotBeFailed},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := lrp.Step(lrp.Slot{ProcessGUID: "p"}, c.d, c.command, c.now, lrp.Policy{})
			if !errors.Is(err, c.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestARefusalSaysWhatStandsInTheWay(t *testing.T) {
	l := newLife(t)
	l.do(lrp.CreateMissing{}, lrp.Start{Instance: omega})
	_, err := l.try(lrp.Start{Instance: alpha})
	var refused *lrp.TransitionError
	if !errors.As(err, &refused) || refused.Command != "Start" || refused.ProcessGUID != "p" || refused.Absent || errors.Is(err, lrp.ErrNotFound) {
		t.Fatalf("got %#v", err)
	}
	want := `Start p/0: actual LRP cannot be started: another instance is running: definition "v1" is RUNNING ORDINARY as instance "i2" on cell "cell-2"`
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
}
