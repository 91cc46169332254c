package storage_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// A process of the release before updates a deployment and drops definitions, and
// leaves the rules as they are.
func TestTheStateOfARolloutIsOnlyThatOfItsDefinition(t *testing.T) {
	rolling := func(active string, ids ...string) *lrp.Deployment {
		d := &lrp.Deployment{ActiveDefinitionID: active, Definitions: map[string]lrp.Definition{}}
		for _, id := range ids {
			d.Definitions[id] = lrp.Definition{}
		}
		return d
	}
	wrote := rolling("v2", "v1", "v2")
	wrote.Rollout = &lrp.RolloutPolicy{Canary: 1}
	wrote.RolloutState = lrp.RolloutState{From: "v1", Confirmed: true}
	data, err := storage.EncodeRules(wrote)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why  string
		d    *lrp.Deployment
		kept bool
	}{
		{"nothing has changed", rolling("v2", "v1", "v2"), true},
		{"another definition is active", rolling("v3", "v1", "v2", "v3"), false},
		{"the definition before is gone", rolling("v2", "v2"), false},
	} {
		if err := storage.DecodeRules(data, test.d); err != nil {
			t.Fatal(err)
		}
		if kept := !test.d.RolloutState.IsZero(); kept != test.kept || test.d.Rollout == nil {
			t.Errorf("%s: %+v, %+v", test.why, test.d.RolloutState, test.d.Rollout)
		}
	}
}

func TestARevisionThatCannotBeDecodedIsLeftOut(t *testing.T) {
	d := &lrp.Deployment{Revisions: []lrp.Revision{
		{Number: 1, DefinitionID: "v1", Began: lrp.BeganCreated, End: lrp.RevisionReplaced},
		{Number: 2, DefinitionID: "v2", Began: lrp.BeganUpdated, End: lrp.RevisionReplaced},
		{Number: 3, DefinitionID: "v3", Began: lrp.BeganRolledBack},
	}}
	data, err := storage.EncodeRevisions(d)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		why  string
		data []byte
		left []int // the numbers of the revisions that can be decoded
		says string
	}{
		{"nothing is wrong", data, []int{1, 2, 3}, ""},
		{"there is no history", nil, nil, ""},
		{"a word of a later release", bytes.Replace(data, []byte(`"UPDATED"`), []byte(`"PROMOTED"`), 1), []int{1, 3}, "number 2 of 3: "},
		{"two of them", bytes.ReplaceAll(data, []byte(`"REPLACED"`), []byte(`"RETIRED"`)), []int{3}, "number 2 of 3: "},
		{"another version", append([]byte{99}, data[1:]...), nil, "version 99"},
		{"no JSON", data[:20], nil, "JSON"},
	} {
		got := &lrp.Deployment{Revisions: []lrp.Revision{{Number: 9}}}
		err := storage.DecodeRevisions(test.data, got)
		if (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v, want %q", test.why, err, test.says)
		}
		var left []int
		for _, r := range got.Revisions {
			left = append(left, r.Number)
		}
		if !slices.Equal(left, test.left) {
			t.Errorf("%s: the revisions %v are left, want %v", test.why, left, test.left)
		}
	}
}
