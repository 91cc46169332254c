package executor

import "errors"

// What the errors of all packages of rules and of every store wrap where a
// record is missing or in the way. storage.ErrNotFound and storage.ErrExists
// are these.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("not found")
	// ErrExists: there is such a record already.
	ErrExists = errors.New("exists already")
)
