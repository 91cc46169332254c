package task

import (
	"strings"
	"testing"
	"time"
)

func TestEveryEventIsExplained(t *testing.T) {
	long := completeAlpha
	long.Result = strings.Repeat("7", 200)
	quiet := completeAlpha
	quiet.Result = ""
	for _, c := range []struct {
		before []Command // that lead to where the last command comes
		last   Command
		after  time.Duration
		want   string
	}{
		{nil, desire(), 0, "desired"},
		{[]Command{desire()}, startAlpha, 0, "runs on α"},
		{[]Command{desire()}, rejected, 0, "was not begun and is tried again: insufficient resources"},
		{[]Command{desire(), startAlpha}, rejectAlpha, 0, "was not begun and is tried again: failed to create container"},
		{[]Command{desire(), startAlpha}, completeAlpha, 0, `succeeded: "42"`},
		{[]Command{desire(), startAlpha}, quiet, 0, "succeeded"},
		{[]Command{desire(), startAlpha}, long, 0, `succeeded with a result of 200 bytes: "` + long.Result[:100] + `"…`},
		{[]Command{desire(), startAlpha}, Cancel{}, 0, "failed: cancelled"},
		{[]Command{desire(), startAlpha}, CellMissing{CellID: "α"}, 0, "failed: cell disappeared before completion"},
		{[]Command{desire(), startAlpha, completeAlpha}, Resolve{}, 0, "is being dealt with"},
		{[]Command{desire(), startAlpha, completeAlpha, Resolve{}}, DemoteResolving{}, time.Hour, "has not been dealt with in time; somebody else may"},
		{[]Command{desire(), startAlpha, completeAlpha, Resolve{}}, Delete{}, 0, "deleted"},
		{[]Command{desire(), startAlpha, completeAlpha}, ExpireCompleted{}, time.Hour, "deleted: nobody has dealt with it in time"},
	} {
		d := step1(t, follow(t, nil, c.before...), c.last, after(c.after))
		if got := d.Events[0].Explain(); got != c.want {
			t.Errorf("%s: %q, want %q", c.last.Name(), got, c.want)
		}
	}
	if got := (Event{Kind: Changed}).Explain(); got != "changed" {
		t.Errorf("an event about nothing: %q", got)
	}
}
