package apidocs

import (
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestCommentsAreWrittenForReadersOfJSON(t *testing.T) {
	type example struct {
		Retryable   bool   `json:"retryable"`
		MinHealthy  int    `json:"min_healthy_nanoseconds"`
		State       string `json:"state"`
		Event       string `json:"event"`
		MaxInFlight int    `json:"max_in_flight"`
	}
	ts := &types{limits: map[string]string{"apidocs.MaxNameBytes": "255 bytes", "executor.MaxReasonBytes": "1 KiB"}}
	for _, c := range []struct{ name, field, comment, want string }{
		{"a field of several words", "", "It waits for MinHealthy.", "It waits for `min_healthy_nanoseconds`."},
		{"a field that begins its own comment", "Retryable", "Retryable asks again.", "`retryable` asks again."},
		{"a word of English", "", "State your case.", "State your case."},
		{"a field of one word", "", "State is RUNNING or Retryable.", "`state` is RUNNING or `retryable`."},
		{"a type of a field's name", "", "An Event is one Event of an Event.", "An Event is one `event` of an Event."},
		{"a member of something else", "", "At most Policy.MaxInFlight and Event.Explain.", "At most Policy.MaxInFlight and Event.Explain."},
		{"a limit", "", "It has at most MaxNameBytes, and executor.MaxReasonBytes of text.", "It has at most 255 bytes, and 1 KiB of text."},
		{"a field that is named like a limit", "", "MaxInFlight is a number.", "`max_in_flight` is a number."},
		{"a reference to a symbol", "", "It is refused; see executor.Demands. Other cells take it. See Bare.", "It is refused. Other cells take it."},
		{"a reference to a page", "", "It has schemes. See docs/cells.md.", "It has schemes. See docs/cells.md."},
		{"a sentence for programs in Go", "", "It is small. It is a value that goroutines share. It never changes.", "It is small. It never changes."},
		{"a zero value", "", "The zero value means none, nil that nothing is set.", "An empty one means none, absent that nothing is set."},
	} {
		t.Run(c.name, func(t *testing.T) {
			if have := ts.inJSON(c.comment, reflect.TypeFor[example](), c.field); have != c.want {
				t.Errorf("have %q\nwant %q", have, c.want)
			}
		})
	}
}

func TestThePageSpeaksOfJSONAndNotOfGo(t *testing.T) {
	page, err := Page("../..")
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ = strings.Cut(page, "\n## Types\n")
	for _, line := range regexp.MustCompile(`(?m)^.*(?:goroutine|\bnil\b|\bzero\b|\*[A-Z]\w+Error|\bMax[A-Z]\w*Bytes|[Ss]ee [a-z]*\.?[A-Z]\w*\.[ |]).*$`).FindAllString(page, -1) {
		t.Errorf("this is for programs in Go: %s", line)
	}
}
