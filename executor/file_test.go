package executor_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
)

// Stores, events and answers have the escapes of encoding/json: 6 bytes for each "<".
func TestTheSizeOfANewDefinitionIsThatOfItsJSONInTheStore(t *testing.T) {
	type definition struct {
		Text  string
		Files []executor.File
	}
	const around = len(`{"Text":"","Files":}`)
	text := func(unit string, n int) definition { return definition{Text: strings.Repeat(unit, n)} }
	files := func(n int, path, content string) definition {
		return definition{Files: slices.Repeat([]executor.File{{Path: path, Content: content}}, n)}
	}
	for _, test := range []struct {
		name string
		definition
		want string
	}{
		{"the longest text", text("x", executor.MaxDefinitionBytes-around), ""},
		{"a longer text", text("x", executor.MaxDefinitionBytes-around+1), "262145 bytes: want at most 262144 bytes as JSON, beside files"},
		{"a text with escapes", text("<", 50_000), "300020 bytes: want at most 262144 bytes as JSON, beside files"},
		{"a text of lines for JavaScript", text("\u2028", 50_000), "300020 bytes: want at most 262144 bytes as JSON, beside files"},
		{"the largest files", files(1, "f", strings.Repeat("x", executor.MaxFilesBytes)), ""},
		{"files of lines", files(1, "f", strings.Repeat("0123456789\n", executor.MaxFilesBytes/11)), ""},
		{"files with escapes", files(1, "f", strings.Repeat("<", executor.MaxFilesBytes/4)),
			"volume_mounted_files: 1572891 bytes: want at most 1572864 bytes as JSON, together with their paths"},
		{"long paths with escapes", files(100, strings.Repeat("&", 3000), "x"),
			"volume_mounted_files: 1802601 bytes: want at most 1572864 bytes as JSON, together with their paths"},
		{"the longest path", files(1, strings.Repeat("p", executor.MaxFilePathBytes), "x"), ""},
		{"a longer path", files(1, strings.Repeat("p", executor.MaxFilePathBytes+1), "x"),
			"volume_mounted_files[0].path: 4096 bytes: want at most 4095 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var v executor.Validator
			executor.ValidateSize(&v, test.definition, test.Files)
			if got := strings.Join(lines(v.Err()), "; "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
