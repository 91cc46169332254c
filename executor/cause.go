package executor

// A Cause says why something changed: the command and what it knew.
type Cause struct {
	// Command is the command's name.
	Command string `json:"command"`
	// Detail is what the command knew: a crash reason, a missing cell.
	Detail string `json:"detail,omitempty"`
}
