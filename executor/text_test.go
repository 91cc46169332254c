package executor_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/diegosdk/diego/executor"
)

func TestReasonsAreCutAtACharacterWithAMark(t *testing.T) {
	longest := strings.Repeat("x", executor.MaxReasonBytes)
	for _, test := range []struct{ name, text, want string }{
		{"empty", "", ""},
		{"short", "no room", "no room"},
		{"longest", longest, longest},
		{"too long", longest + "x", longest[:1018] + " (cut)"},
		{"two-byte characters", strings.Repeat("é", 600), strings.Repeat("é", 509) + " (cut)"},
		{"three-byte characters", strings.Repeat("€", 400), strings.Repeat("€", 339) + " (cut)"},
		{"no UTF-8", "a\xff\xfeb", "a\uFFFDb"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := executor.CutReason(test.text)
			if got != test.want || len(got) > executor.MaxReasonBytes || !utf8.ValidString(got) {
				t.Errorf("%d bytes: %q", len(got), got)
			}
			if again := executor.CutReason(got); again != got {
				t.Errorf("cut again: %q", again)
			}
		})
	}
}
