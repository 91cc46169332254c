package wire

import (
	"crypto/rand"
	"unicode/utf8"
)

// RequestIDHeader names a call, so that it is carried out once however often it
// is sent. Every answer has that of its request.
const RequestIDHeader = "Diego-Request-Id"

// MaxRequestIDBytes is the longest request id.
const MaxRequestIDBytes = 255

// newRequestID is an id that nobody can guess.
func newRequestID() string { return rand.Text() }

// fitsHeader reports whether an id can travel as it is: printable ASCII, not
// too long.
func fitsHeader(id string) bool {
	for _, c := range id {
		if c < ' ' || c > '~' || c == utf8.RuneError {
			return false
		}
	}
	return id != "" && len(id) <= MaxRequestIDBytes && id[0] != ' ' && id[len(id)-1] != ' '
}
