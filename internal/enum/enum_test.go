package enum_test

import (
	"errors"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
)

type colour uint8

const (
	red colour = iota + 1
	_          // no constant
	blue
)

var (
	colours = enum.Names[colour]{red: "red", blue: "blue"}
	many    = enum.Names[colour]{"a", "b", "c", "d", "e"}
)

func TestAConstantHasItsNameAndOtherNumbersHaveNone(t *testing.T) {
	for _, tt := range []struct {
		value colour
		text  string
		known bool
	}{{0, "colour(0)", false}, {red, "red", true}, {2, "colour(2)", false}, {blue, "blue", true}, {4, "colour(4)", false}} {
		if got := colours.Of(tt.value); got != tt.text {
			t.Errorf("%d is %q, want %q", uint8(tt.value), got, tt.text)
		}
		text, err := colours.Marshal("colour", tt.value)
		if (err == nil) != tt.known || err == nil && string(text) != tt.text {
			t.Errorf("%d becomes %q, %v", uint8(tt.value), text, err)
		}
		var back colour
		if err := colours.Unmarshal("colour", &back, []byte(tt.text)); (err == nil) != tt.known || err == nil && back != tt.value {
			t.Errorf("%q becomes %d, %v", tt.text, uint8(back), err)
		}
	}
}

func TestAnErrorSaysWhatIsKnown(t *testing.T) {
	for _, tt := range []struct {
		names enum.Names[colour]
		text  string
		limit string
	}{{colours, "", "red or blue"}, {colours, "Red", "red or blue"}, {many, "x", "a known colour"}, {many[:4], "x", "a, b, c or d"}} {
		value := blue
		err := tt.names.Unmarshal("colour", &value, []byte(tt.text))
		var invalid *executor.ValidationError
		if !errors.As(err, &invalid) || invalid.Fields[0].Field != "colour" || invalid.Fields[0].Limit != tt.limit || value != blue {
			t.Errorf("%q: %v, and the value is %v", tt.text, err, value)
		}
	}
}
