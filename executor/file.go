package executor

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Limits of the size of a new definition of a process or task, as the JSON in which it is
// stored and sent: encoding/json's, where "<", ">" and "&" have 6 bytes each. Each
// instance costs the control plane and its cell several copies. A deployment with
// lrp.MaxDefinitions has at most 29 MiB, and an event with the deployment before and
// after twice that, which clients must be able to read (httpapi.ClientOptions.MaxAnswerBytes).
const (
	// MaxDefinitionBytes is for the definition together with the settings of the
	// process, but without its files and routes.
	MaxDefinitionBytes = 256 << 10
	// MaxFilesJSONBytes is for all files together, with their paths: 1.5 MiB.
	MaxFilesJSONBytes = 3 << 19
	// MaxFilePathBytes is for the path of one file, and counts its own bytes. No
	// longer path can be opened on Linux.
	MaxFilePathBytes = 4095
)

// MaxFilesBytes bounds the content of all Files of a container together.
const MaxFilesBytes = 1 << 20

// ValidateSize checks that a new definition keeps MaxDefinitionBytes, MaxFilesJSONBytes
// and MaxFilePathBytes. files are those in it.
func ValidateSize(v *Validator, definition any, files []File) {
	inFiles := jsonBytes(files)
	size := jsonBytes(definition) - inFiles
	v.Check(size <= MaxDefinitionBytes, "", fmt.Sprintf("%d bytes", size), fmt.Sprintf("at most %d bytes as JSON, beside files", MaxDefinitionBytes))
	v.Check(inFiles <= MaxFilesJSONBytes, "volume_mounted_files", fmt.Sprintf("%d bytes", inFiles),
		fmt.Sprintf("at most %d bytes as JSON, together with their paths", MaxFilesJSONBytes))
	for i, f := range files {
		if n := len(f.Path); n > MaxFilePathBytes {
			v.At("volume_mounted_files", i).Check(false, "path", fmt.Sprintf("%d bytes", n), fmt.Sprintf("at most %d bytes", MaxFilePathBytes))
		}
	}
}

// jsonBytes is the length of a value in JSON. If it has none, something else says why.
func jsonBytes(value any) int {
	text, _ := json.Marshal(value)
	return len(text)
}

// A File is written into the container before anything runs in it.
type File struct {
	// Path may not lead upwards: it has no element "..". In a new definition it has at
	// most MaxFilePathBytes.
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
