package executor_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
)

func TestMetricTagsAreStaticOrDynamicAndNameTheirSource(t *testing.T) {
	type tags = map[string]executor.MetricTag
	for _, test := range []struct {
		name, guid string
		tags       tags
		want       []string
	}{
		{"no tags", "guid", nil, nil},
		{"the source", "guid", tags{"source_id": {Static: "guid"}, "index": {Dynamic: "INDEX"}, "instance": {Dynamic: "INSTANCE_GUID"}}, nil},
		{"no guid, no source", "", tags{"a": {Static: "b"}}, nil},
		{"no source", "guid", tags{"a": {Static: "b"}}, []string{"metric_tags.source_id: want the static tag guid"}},
		{"both, neither and something else", "", tags{"c": {Dynamic: "CELL"}, "b": {}, "a": {Static: "x", Dynamic: "INDEX"}}, []string{
			"metric_tags.a.static: x: want exactly one of static and dynamic",
			"metric_tags.b.static: want exactly one of static and dynamic",
			"metric_tags.c.dynamic: CELL: want INDEX or INSTANCE_GUID",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var v executor.Validator
			executor.ValidateMetricTags(&v, test.tags, test.guid)
			if diff := cmp.Diff(test.want, lines(v.Err())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAModificationTagIsSucceededByOtherEpochsAndLargerIndexes(t *testing.T) {
	first := executor.ModificationTag{Epoch: at(0).UnixNano()}
	other := executor.ModificationTag{Epoch: at(-1).UnixNano(), Index: 0}
	for _, test := range []struct {
		old, new executor.ModificationTag
		want     bool
	}{
		{first, first, false}, {first, first.Next(), true}, {first.Next(), first, false}, {first.Next(), other, true}, {executor.ModificationTag{}, first, true},
	} {
		if got := test.old.SucceededBy(test.new); got != test.want {
			t.Errorf("%+v by %+v: %v", test.old, test.new, got)
		}
	}
	if !(executor.ModificationTag{}).IsZero() || first.IsZero() || !first.Created().Equal(at(0)) || first.Created().Location() != time.UTC {
		t.Error(first)
	}
}
