package executor_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
)

func TestAValidatorNamesThePathTheValueAndTheLimit(t *testing.T) {
	var v executor.Validator
	v.Check(true, "fine", 1, "anything")
	v.Check(false, "a", -1, "at least 0")
	inner := v.In("b").At("c", 2)
	inner.Check(false, "d", "", "a text")
	inner.Check(false, "", strings.Repeat("ä", 40), "something shorter")
	v.In("").Check(false, "e", true, "false")
	v.Check(false, "", "", "another record")
	want := []string{
		"a: -1: want at least 0",
		"b.c[2].d: want a text",
		"b.c[2]: " + strings.Repeat("ä", 32) + "…: want something shorter",
		"e: true: want false",
		"want another record",
	}
	if diff := cmp.Diff(want, lines(v.Err())); diff != "" {
		t.Error(diff)
	}
	if got := v.Err().Error(); got != "invalid input: "+strings.Join(want, "; ") {
		t.Error(got)
	}
}

func TestAValidatorCutsAValueAtACharacter(t *testing.T) {
	var v executor.Validator
	v.Check(false, "a", "x"+strings.Repeat("ä", 40), "x")
	if diff := cmp.Diff([]string{"a: x" + strings.Repeat("ä", 31) + "…: want x"}, lines(v.Err())); diff != "" {
		t.Error(diff)
	}
}

func TestAValidatorThatFindsNothingGivesNoError(t *testing.T) {
	var v executor.Validator
	v.In("a").Check(true, "b", 1, "c")
	if err := v.Err(); err != nil {
		t.Error(err)
	}
}

func TestAValidatorListsALimitedNumberOfErrors(t *testing.T) {
	info := fullRunInfo()
	info.Env = make([]executor.EnvVar, executor.MaxFieldErrors+7)
	var v executor.Validator
	info.Validate(&v)
	var invalid *executor.ValidationError
	if !errors.As(v.Err(), &invalid) || len(invalid.Fields) != executor.MaxFieldErrors || invalid.Omitted != 7 {
		t.Fatal(v.Err())
	}
	if !strings.HasSuffix(invalid.Error(), "; and 7 more") {
		t.Error(invalid)
	}
}

func TestANameIsTextThatFitsIntoARecord(t *testing.T) {
	for _, name := range []string{"a", "cf-apps/é", "α 1", strings.Repeat("x", executor.MaxNameBytes)} {
		var v executor.Validator
		if v.Name("domain", name); v.Err() != nil {
			t.Error(v.Err())
		}
	}
	for _, name := range []string{"", "a\x00", "\xff", strings.Repeat("x", executor.MaxNameBytes+1)} {
		var v executor.Validator
		if v.Name("domain", name); v.Err() == nil {
			t.Errorf("%q is a name", name)
		}
	}
}

func TestPlacementTagsAreNamesAndNotTooMany(t *testing.T) {
	for want, tags := range map[string][]string{
		"": slices.Repeat([]string{"a"}, executor.MaxListLength),
		"placement_tags[1]: want 1 to 255 bytes of UTF-8 without NUL": {"a", ""},
		"placement_tags: 10001: want at most 10000 elements":          make([]string, executor.MaxListLength+1),
	} {
		var v executor.Validator
		executor.ValidatePlacementTags(&v, tags)
		if got := strings.Join(lines(v.Err()), "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// What is stored may have more, since an earlier release took it.
func TestOnlyNewPlacementTagsMustBeFewAndDifferent(t *testing.T) {
	many := make([]string, executor.MaxPlacementTags+1)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	for want, tags := range map[string][]string{
		"": many[1:],
		"placement_tags: 101: want at most 100 elements":                   many,
		"placement_tags[2]: a: want a tag that the list does not have yet": {"a", "b", "a", "c"},
	} {
		var v, old executor.Validator
		executor.ValidateNewPlacementTags(&v, tags)
		if got := strings.Join(lines(v.Err()), "; "); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if executor.ValidatePlacementTags(&old, tags); old.Err() != nil {
			t.Errorf("stored: %v", old.Err())
		}
	}
}

func TestAGUIDIsLettersDigitsAndTwoMarks(t *testing.T) {
	for _, guid := range []string{"a", "Z", "0", "-", "_", "4f2a-B_9", strings.Repeat("x", executor.MaxGUIDBytes)} {
		var v executor.Validator
		if v.GUID("guid", guid); v.Err() != nil {
			t.Error(v.Err())
		}
	}
	for _, guid := range []string{"", " ", "a b", "a/b", "ä", "a\x00", "a.b", strings.Repeat("x", executor.MaxGUIDBytes+1)} {
		var v executor.Validator
		if v.GUID("guid", guid); v.Err() == nil {
			t.Errorf("%q is a guid", guid)
		}
	}
}

func TestAnAnnotationHasALimit(t *testing.T) {
	for n, want := range map[int]string{
		0: "", executor.MaxAnnotationBytes: "",
		executor.MaxAnnotationBytes + 1: "annotation: 10241 bytes: want at most 10240 bytes",
	} {
		var v executor.Validator
		executor.ValidateAnnotation(&v, strings.Repeat("x", n))
		if got := strings.Join(lines(v.Err()), "; "); got != want {
			t.Errorf("%d bytes: got %q, want %q", n, got, want)
		}
	}
}

func TestAnImagesUserAndPasswordComeTogetherAndThePasswordIsNeverShown(t *testing.T) {
	for _, c := range []struct{ user, password, want string }{
		{"", "", ""},
		{"user", "secret", ""},
		{"user", "", "image_username: user: want set together with image_password, or not at all"},
		{"", "secret", "image_username: want set together with image_password, or not at all"},
	} {
		var v executor.Validator
		executor.ValidateImageCredentials(&v, c.user, c.password)
		if got := strings.Join(lines(v.Err()), "; "); got != c.want {
			t.Errorf("%q and %q: got %q, want %q", c.user, c.password, got, c.want)
		}
	}
}
