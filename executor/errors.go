package executor

import "errors"

// Errors of all packages of rules and of every store wrap these if a record is
// missing or in the way. They are also storage.ErrNotFound and
// storage.ErrExists.
var (
	// ErrNotFound: there is no such record.
	ErrNotFound = errors.New("not found")
	// ErrExists: there is such a record already.
	ErrExists = errors.New("exists already")
)
