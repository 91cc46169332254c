package httpapi

import (
	"net/url"
	"reflect"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// A field that got lost on the way would select nothing, in silence.
func TestEveryFieldOfTheFilterOfASubscriptionTravels(t *testing.T) {
	selector, err := executor.ParseSelector("team=blog,tier!=web,owner,!old")
	if err != nil {
		t.Fatal(err)
	}
	in := subscribeArgs{7, storage.EventFilter{
		Kinds: []string{"a", "b"}, ProcessGUIDs: []string{"p,q", "r&s"}, Indices: []int{0, 3}, TaskGUIDs: []string{"t"},
		CellIDs: []string{"c"}, Domains: []string{"d"}, Selector: selector, Labels: true,
	}}
	for i, fields := 0, reflect.ValueOf(in.Filter); i < fields.NumField(); i++ {
		if fields.Field(i).IsZero() {
			t.Errorf("the test does not set %s", fields.Type().Field(i).Name)
		}
	}
	got, err := parseSubscribe(subscribeQuery(in), "")
	if err != nil || !reflect.DeepEqual(got, in) {
		t.Errorf("got %+v, want %+v: %v", got, in, err)
	}
}

// A server that used only one of two selectors would send events that nobody asked for.
func TestSelectorsInAQueryMustAllHold(t *testing.T) {
	got, err := parseSubscribe(url.Values{"selector": {"team=blog", "!old"}}, "")
	if err != nil || got.Filter.Selector.String() != "team=blog,!old" {
		t.Errorf("two selectors are %q: %v", got.Filter.Selector, err)
	}
}
