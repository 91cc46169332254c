package spelling_test

import (
	"testing"

	"github.com/diegosdk/diego/internal/spelling"
)

func TestTheNearestKnownWordIsGuessed(t *testing.T) {
	known := []string{"instances", "domain", "lrp", "task", "list", "delete"}
	tests := []struct{ word, want string }{
		{"instnaces", "instances"}, // swapped
		{"instance", "instances"},  // missing
		{"domaine", "domain"},      // too many
		{"damain", "domain"},       // different
		{"lpr", "lrp"},
		{"lrps", "lrp"},
		{"lst", "list"},
		{"list", "list"},
		{"delet", "delete"},

		{"", ""},
		{"x", ""},
		{"lists of it", ""},
		{"annotation", ""},
	}
	for _, tt := range tests {
		t.Run(tt.word, func(t *testing.T) {
			if got := spelling.Nearest(tt.word, known); got != tt.want {
				t.Errorf("guessed %q, want %q", got, tt.want)
			}
		})
	}
	if got := spelling.Nearest("aa", []string{"ab", "ac"}); got != "ab" {
		t.Errorf("of two that are equally near %q was guessed, want the first", got)
	}
	if got := spelling.Nearest("word", nil); got != "" {
		t.Errorf("guessed %q of nothing", got)
	}
}
