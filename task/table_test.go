package task

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

func TestEveryStateAndCommandHasExactlyOneRule(t *testing.T) {
	seen := map[[3]int]int{} // state, command, premise holds
	for _, r := range rules {
		if r.premise != Fails {
			seen[[3]int{int(r.state), int(r.command), 1}]++
		}
		if r.premise != Holds {
			seen[[3]int{int(r.state), int(r.command), 0}]++
		}
	}
	for s := range numStates {
		for k := range numKinds {
			for _, holds := range []int{0, 1} {
				if n := seen[[3]int{int(s), int(k), holds}]; n != 1 {
					t.Errorf("%v, %s, premise %d: %d rules, want 1", s, kindNames[k], holds, n)
				}
			}
		}
	}
}

func TestRulesAreInTheOrderOfStatesAndCommands(t *testing.T) {
	if !slices.IsSortedFunc(rules, func(a, b rule) int {
		if a.state != b.state {
			return int(a.state) - int(b.state)
		}
		if a.command != b.command {
			return int(a.command) - int(b.command)
		}
		return int(a.premise) - int(b.premise)
	}) {
		t.Error("not sorted")
	}
}

func TestARuleRefusesIfAndOnlyIfItHasAnError(t *testing.T) {
	for _, r := range rules {
		if (r.do == refuse) != (r.err != nil) {
			t.Errorf("%v, %s: action %d with error %v", r.state, kindNames[r.command], r.do, r.err)
		}
		if r.reason == "" {
			t.Errorf("%v, %s: no reason", r.state, kindNames[r.command])
		}
	}
}

func TestCommandsOfConvergenceAreNeverRefused(t *testing.T) {
	convergence := []Command{RequestAgain{}, ExpirePending{}, CellMissing{}, DemoteResolving{}, RequestCallback{}, ExpireCompleted{}}
	for _, r := range rules {
		for _, c := range convergence {
			if r.command == c.kind() && r.do == refuse {
				t.Errorf("%v, %s is refused", r.state, c.Name())
			}
		}
	}
}

func TestNamesAreThoseOfTheTypes(t *testing.T) {
	names := map[string]bool{}
	for i, c := range everyCommand {
		if c.kind() != kind(i) {
			t.Errorf("%T has kind %d, want %d", c, c.kind(), i)
		}
		if want := strings.TrimPrefix(typeName(c), "task."); c.Name() != want {
			t.Errorf("%T has the name %q", c, c.Name())
		}
		names[c.Name()] = true
	}
	if len(names) != int(numKinds) {
		t.Errorf("%d names for %d commands", len(names), numKinds)
	}
}

// TestTheTableIsTheSpecifications compares the table with a transcript that
// was made by hand. Each change of state, refusal and request must
// be in both.
func TestTheTableIsTheSpecifications(t *testing.T) {
	data, err := os.ReadFile("testdata/transitions.txt")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]bool{}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		fields := strings.Split(line, "|")
		if len(fields) != 5 {
			t.Fatalf("%q has %d fields", line, len(fields))
		}
		for i := range fields {
			fields[i] = strings.TrimSpace(fields[i])
		}
		want[fmt.Sprintf("%s, %s: %s", fields[0], fields[1], fields[2])] = true
	}

	errorNames := map[error]string{
		ErrNotFound: "ErrNotFound", ErrExists: "ErrExists", ErrInvalidTransition: "ErrInvalidTransition",
		ErrRunningElsewhere: "ErrRunningElsewhere", ErrOtherAttempt: "ErrOtherAttempt",
	}
	got := map[string]bool{}
	for _, r := range Table() {
		other := ""
		if r.Premise == Fails {
			other = " (other)"
		}
		if r.Err != nil {
			got[fmt.Sprintf("%s, %s%s: %s", text(r.State), r.Command, other, errorNames[r.Err])] = true
			continue
		}
		var asks []string
		for _, e := range r.Effects {
			asks = append(asks, e.String())
		}
		if asks != nil {
			got[fmt.Sprintf("%s, %s%s: asks %s", text(r.State), r.Command, other, strings.Join(asks, ", "))] = true
		}
		if r.Next != r.State || r.LastNext != r.Next {
			got[fmt.Sprintf("%s, %s%s: %s", text(r.State), r.Command, other, text(r.Next))] = true
		}
		if r.LastNext != r.Next {
			got[fmt.Sprintf("%s, %s (last): %s", text(r.State), r.Command, text(r.LastNext))] = true
		}
	}
	for row := range want {
		if !got[row] {
			t.Errorf("the table lacks %s", row)
		}
	}
	for row := range got {
		if !want[row] {
			t.Errorf("the specification lacks %s", row)
		}
	}
}

func text(s State) string {
	if s == Absent {
		return "none"
	}
	return s.String()
}

func TestTheTableCanBeKeptAndChanged(t *testing.T) {
	rows := Table()
	for i := range rows {
		for j := range rows[i].Effects {
			rows[i].Effects[j] = 0
		}
	}
	if slices.ContainsFunc(Table(), func(r Row) bool { return slices.Contains(r.Effects, 0) }) {
		t.Error("Table hands out what Step looks at")
	}
}

func TestEnumsHaveNames(t *testing.T) {
	for _, test := range []struct{ got, want string }{
		{Absent.String(), "no record"}, {Pending.String(), "PENDING"}, {State(9).String(), "State(9)"},
		{Either.String(), "either"}, {Holds.String(), "holds"}, {Fails.String(), "fails"}, {Premise(9).String(), "Premise(9)"},
		{Created.String(), "created"}, {Changed.String(), "changed"}, {Removed.String(), "removed"}, {EventKind(0).String(), "EventKind(0)"},
		{RequestStart.String(), "request start"}, {CancelOnCell.String(), "cancel on cell"}, {CallBack.String(), "call back"},
		{EffectKind(9).String(), "EffectKind(9)"},
		{Delivered.String(), "delivered"}, {TryAgain.String(), "try again"}, {LeaveIt.String(), "leave it"},
		{CallbackAction(0).String(), "CallbackAction(0)"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}
