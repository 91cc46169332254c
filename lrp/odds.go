package lrp

import "github.com/diegosdk/diego/internal/enum"

// Odds say how surprising a row of a table is. They do not change what the row
// does; a shell counts and reports the inconceivable ones.
type Odds uint8

const (
	// Unstated is a row for which the specification gives no odds.
	Unstated Odds = iota
	// Expected happens in the normal course of things.
	Expected
	// Conceivable needs a failure, a race or a late message.
	Conceivable
	// Inconceivable should not happen; the row still says what to do.
	Inconceivable
)

var oddsNames = enum.Names[Odds]{Unstated: "unstated", Expected: "expected", Conceivable: "conceivable", Inconceivable: "inconceivable"}

// String is the odds in lower case, for example "expected".
func (o Odds) String() string { return oddsNames.Of(o) }
