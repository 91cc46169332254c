package executor

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// MaxDefinitionBytes is the most that a new definition of a process or task may have as
// JSON, together with the settings of the process, but without its files and routes. Each instance costs the control plane and its
// cell several copies.
const MaxDefinitionBytes = 256 << 10

// ValidateSize checks that a new definition keeps MaxDefinitionBytes. files are those in it.
func ValidateSize(v *Validator, definition any, files []File) {
	size := jsonBytes(definition) - jsonBytes(files)
	v.Check(size <= MaxDefinitionBytes, "", fmt.Sprintf("%d bytes", size), fmt.Sprintf("at most %d bytes as JSON, beside files", MaxDefinitionBytes))
}

// jsonBytes is the length of a value in JSON. If it has none, something else says why.
func jsonBytes(value any) int {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(value)
	return text.Len()
}

// MaxFilesBytes bounds the content of all Files of a container together.
const MaxFilesBytes = 1 << 20

// A File is written into the container before anything runs in it.
type File struct {
	// Path may not lead upwards: it has no element "..".
	Path string `json:"path"`
	// Content is not empty.
	Content string `json:"content"`
}

// Validate checks that path and content are set and that the path is safe.
// Errors never show the content.
func (f File) Validate(v *Validator) {
	v.Check(f.Path != "" && !strings.Contains(f.Path, "\x00") && !strings.Contains("/"+f.Path+"/", "/../"),
		"path", f.Path, "a path without .. and NUL")
	v.required("content", f.Content)
}

func validateFiles(v *Validator, field string, files []File) {
	if !v.lengthAtMost(field, len(files), MaxFiles) {
		return
	}
	total := 0
	for i, f := range files {
		f.Validate(v.At(field, i))
		total += len(f.Content)
	}
	v.Check(total <= MaxFilesBytes, field, fmt.Sprintf("%d bytes", total),
		fmt.Sprintf("at most %d bytes of content in all", MaxFilesBytes))
}
