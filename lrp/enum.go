package lrp

import (
	"fmt"

	"github.com/diegosdk/diego/executor"
)

// An enum has the names of a set of constants, by their numbers; a number
// without a name is not a constant.
type enum struct {
	what  string
	names []string
}

func (e enum) name(n uint8) string {
	if int(n) >= len(e.names) || e.names[n] == "" {
		return fmt.Sprintf("%s(%d)", e.what, n)
	}
	return e.names[n]
}

func (e enum) marshal(n uint8) ([]byte, error) {
	if int(n) >= len(e.names) || e.names[n] == "" {
		return nil, e.unknown(e.name(n))
	}
	return []byte(e.names[n]), nil
}

func (e enum) parse(text []byte) (uint8, error) {
	for n, name := range e.names {
		if name != "" && name == string(text) {
			return uint8(n), nil
		}
	}
	return 0, e.unknown(string(text))
}

func (e enum) unknown(text string) error {
	var v executor.Validator
	v.Check(false, e.what, text, "a known "+e.what)
	return v.Err()
}
