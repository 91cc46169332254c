package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"unicode/utf8"
)

// RequestIDHeader names a call, so that it is carried out once however often it
// is sent. Every answer has that of its request.
const RequestIDHeader = "Diego-Request-Id"

// MaxRequestIDBytes is the longest request id.
const MaxRequestIDBytes = 255

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

// ownID makes a request id a caller's own: who takes another's id, by accident
// or to be answered in its stead, has no part in what became of that call.
func ownID(caller, id string) string {
	if caller == "" {
		return id
	}
	sum := sha256.Sum256([]byte(caller + "\x00" + id))
	return hex.EncodeToString(sum[:])
}
