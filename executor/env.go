package executor

import (
	"fmt"
	"strings"
)

// MaxEnvVarBytes is the longest "NAME=value" that Linux passes to a process,
// without the final NUL.
const MaxEnvVarBytes = 128<<10 - 1

// An EnvVar is one environment variable. Of two with the same name, the later
// one counts.
type EnvVar struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// Validate checks that a process can receive the variable. Its errors never
// show the value, which is often a secret.
func (e EnvVar) Validate(v *Validator) {
	v.Check(strings.TrimSpace(e.Name) != "" && !strings.ContainsAny(e.Name, "=\x00"),
		"name", e.Name, "a name that is not blank, without = and NUL")
	if !strings.Contains(e.Name, "\x00") {
		v.OneLine("name", e.Name)
	}
	v.Check(!strings.Contains(e.Value, "\x00"), "value", "", "a text without NUL")
	size := len(e.Name) + len("=") + len(e.Value)
	v.Check(size <= MaxEnvVarBytes, "", fmt.Sprintf("%d bytes", size),
		fmt.Sprintf("at most %d bytes with its name", MaxEnvVarBytes))
}

func validateEnv(v *Validator, field string, env []EnvVar) {
	if !v.listLength(field, len(env)) {
		return
	}
	for i, e := range env {
		e.Validate(v.At(field, i))
	}
}
