package executor_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
)

const oneKind = "exactly one of run, download, upload, timeout, try, emit_progress, parallel, serial and codependent"

func TestAValidActionOfEveryKindIsAccepted(t *testing.T) {
	mustBeValid(t, fullAction())
}

func TestAnInvalidActionIsRefusedWithItsPath(t *testing.T) {
	type A = executor.Action
	none := A{}
	tests := []struct {
		name   string
		action A
		want   []string
	}{
		{"no kind", none, []string{"[]: want " + oneKind}},
		{"two kinds", A{Run: run("/a").Run, Try: &executor.TryAction{Action: run("/b")}},
			[]string{"[run try]: want " + oneKind}},
		{"a run without path and user", A{Run: &executor.RunAction{}},
			[]string{"run.path: want a text that is not empty", "run.user: want a text that is not empty"}},
		{"a run with a bad environment", A{Run: &executor.RunAction{Path: "a", User: "b", Env: []executor.EnvVar{{Name: "A"}, {Name: " "}}}},
			[]string{"run.env[1].name:  : want a name that is not blank, without = and NUL"}},
		{"a run with NUL", A{Run: &executor.RunAction{Path: "a\x00b", User: "b", Args: []string{"", "c\x00"}}},
			[]string{"run.path: a\x00b: want without NUL", "run.args[1]: c\x00: want without NUL"}},
		{"a run with too many arguments", A{Run: &executor.RunAction{Path: "a", User: "b", Args: make([]string, executor.MaxListLength+1)}},
			[]string{"run.args: 10001: want at most 10000 elements"}},
		{"a download of nothing", A{Download: &executor.DownloadAction{Checksum: executor.Checksum{Algorithm: "md5"}}},
			[]string{"download.from: want a text that is not empty", "download.to: want a text that is not empty",
				"download.user: want a text that is not empty", "download.checksum.value: want 32 lower-case hexadecimal digits"}},
		{"an upload of nothing", A{Upload: &executor.UploadAction{}},
			[]string{"upload.from: want a text that is not empty", "upload.to: want a text that is not empty", "upload.user: want a text that is not empty"}},
		{"a timeout of no time", A{Timeout: &executor.TimeoutAction{Action: run("/a")}},
			[]string{"timeout.timeout_ms: 0: want 1 to 9223372036854 milliseconds"}},
		{"a timeout of more than fits a duration", A{Timeout: &executor.TimeoutAction{Action: run("/a"), TimeoutMs: executor.MaxMilliseconds + 1}},
			[]string{"timeout.timeout_ms: 9223372036855: want 1 to 9223372036854 milliseconds"}},
		{"a timeout around nothing", A{Timeout: &executor.TimeoutAction{TimeoutMs: 1}}, []string{"timeout.action: []: want " + oneKind}},
		{"a try around nothing", A{Try: &executor.TryAction{}}, []string{"try.action: []: want " + oneKind}},
		{"progress of nothing", A{EmitProgress: &executor.EmitProgressAction{}}, []string{"emit_progress.action: []: want " + oneKind}},
		{"parallel with no actions", A{Parallel: &executor.ParallelAction{}}, []string{"parallel.actions: 0: want at least 1 element"}},
		{"serial with no actions", A{Serial: &executor.SerialAction{}}, []string{"serial.actions: 0: want at least 1 element"}},
		{"codependent with no actions", A{Codependent: &executor.CodependentAction{}}, []string{"codependent.actions: 0: want at least 1 element"}},
		{"one of several has no kind", A{Serial: &executor.SerialAction{Actions: []A{run("/a"), {Try: &executor.TryAction{Action: A{Parallel: &executor.ParallelAction{Actions: []A{run("/a"), none}}}}}}}},
			[]string{"serial.actions[1].try.action.parallel.actions[1]: []: want " + oneKind}},
		{"nested too deep", nested(executor.MaxActionDepth + 1),
			[]string{strings.Repeat("try.action.", executor.MaxActionDepth-1) + "try.action: 33: want actions nested at most 32 deep"}},
		{"too many in one tree", A{Serial: &executor.SerialAction{Actions: make([]A, executor.MaxActionNodes)}}, nil},
	}
	for i := range tests[len(tests)-1].action.Serial.Actions {
		tests[len(tests)-1].action.Serial.Actions[i] = run("/a")
	}
	tests[len(tests)-1].want = []string{"serial.actions[999]: 1001: want at most 1000 actions in one tree"}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, found(test.action)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheLimitsOfATreeAreInclusive(t *testing.T) {
	mustBeValid(t, nested(executor.MaxActionDepth))
	several := make([]executor.Action, executor.MaxActionNodes-1)
	for i := range several {
		several[i] = run("/a")
	}
	mustBeValid(t, executor.Action{Codependent: &executor.CodependentAction{Actions: several}})
}

func TestFarTooManyActionsAreNotDecoded(t *testing.T) {
	list := func(n int, of string) string {
		return `{"serial":{"actions":[` + strings.TrimSuffix(strings.Repeat(of+",", n), ",") + `]}}`
	}
	for _, tt := range []struct{ text, want string }{
		{list(1_000_000, "{}"), "serial.actions: 1000000: want at most 1000 actions in one tree"},
		{list(100_000, "null"), "serial.actions: 100000: want at most 1000 actions in one tree"},
		{list(101, list(100, `{"run":{}}`)), "serial.actions[98].serial.actions: 10001: want at most 1000 actions in one tree"},
		{`{"try":{"action":` + list(10_001, `{"run":{}}`) + `}}`, "try.action.serial.actions: 10001: want at most 1000 actions in one tree"},
	} {
		var a executor.Action
		var invalid *executor.ValidationError
		if err := a.UnmarshalJSON([]byte(tt.text)); !errors.As(err, &invalid) || invalid.Fields[0].String() != tt.want {
			t.Errorf("the error is %.300v, want %s", err, tt.want)
		}
	}
	// Validate refuses fewer, and names the place in the whole record.
	var a executor.Action
	if err := a.UnmarshalJSON([]byte(list(10_000, "{}"))); err != nil || len(a.Serial.Actions) != 10_000 {
		t.Errorf("10,000 are not decoded: %v", err)
	}
}

func TestATreeThatContainsItselfIsRefused(t *testing.T) {
	loop := executor.Action{Serial: &executor.SerialAction{Actions: make([]executor.Action, 2)}}
	loop.Serial.Actions[0], loop.Serial.Actions[1] = loop, loop
	if got := found(loop); len(got) != 1 || !strings.Contains(got[0], "nested at most 32 deep") {
		t.Error(got)
	}
	for a := range loop.All() { // ends
		_ = a
	}
}

func TestKindNamesTheOneFieldThatIsSet(t *testing.T) {
	var kinds []executor.Kind
	for a := range fullAction().All() {
		kinds = append(kinds, a.Kind())
	}
	want := []executor.Kind{
		executor.KindSerial, executor.KindDownload, executor.KindEmitProgress, executor.KindTry, executor.KindRun, executor.KindTimeout,
		executor.KindParallel, executor.KindRun, executor.KindCodependent, executor.KindRun, executor.KindRun, executor.KindUpload,
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
	if kind := (executor.Action{}).Kind(); kind != "" {
		t.Errorf("no action has the kind %q", kind)
	}
	if kind := (executor.Action{Run: run("/a").Run, Timeout: &executor.TimeoutAction{}}).Kind(); kind != "" {
		t.Errorf("two actions have the kind %q", kind)
	}
}

func TestAllStopsWhenItsReaderDoes(t *testing.T) {
	seen := 0
	for range fullAction().All() {
		if seen++; seen == 4 {
			break
		}
	}
	if seen != 4 {
		t.Error(seen)
	}
}

func TestTimesAreConvertedWithoutOverflow(t *testing.T) {
	for _, test := range []struct {
		ms   int64
		want time.Duration
	}{
		{1500, 1500 * time.Millisecond},
		{-1, 0},
		{executor.MaxMilliseconds, time.Duration(executor.MaxMilliseconds) * time.Millisecond},
		{1 << 62, time.Duration(executor.MaxMilliseconds) * time.Millisecond},
	} {
		if got := (executor.TimeoutAction{TimeoutMs: test.ms}).Timeout(); got != test.want {
			t.Errorf("%d ms are %v", test.ms, got)
		}
	}
}

func TestActionsDecodeFromJSON(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       executor.Action
	}{
		{"an object with one kind", `{"run":{"path":"/a","user":"vcap"}}`, run("/a")},
		{"space around everything", " { \"run\" : {\"path\":\"/a\",\n\"user\":\"vcap\"} } ", run("/a")},
		{"unknown members of an action", `{"run":{"path":"/a","user":"vcap","colour":["red"]}}`, run("/a")},
		{"no kind, for Validate to refuse", `{}`, executor.Action{}},
		{"null", `null`, executor.Action{}},
		{"a wrapper around nothing, for Validate to refuse", `{"try":{}}`, executor.Action{Try: &executor.TryAction{}}},
		{"a list with null, for Validate to refuse", `{"serial":{"actions":[null,{}]}}`,
			executor.Action{Serial: &executor.SerialAction{Actions: make([]executor.Action, 2)}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var got executor.Action
			if err := json.Unmarshal([]byte(test.text), &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestJSONThatIsNoActionIsRefusedWithItsPath(t *testing.T) {
	for _, test := range []struct {
		name, text string
		want       []string
	}{
		{"an unknown kind", `{"walk":{}}`, []string{"walk: want " + oneKind}},
		{"a kind in other letters", `{"Run":{"path":"/a","user":"vcap"}}`, []string{"Run: want " + oneKind}},
		{"two kinds", `{"run":{"path":"/a"},"try":{}}`, []string{"try: want " + oneKind}},
		{"a kind twice", `{"run":{"path":"/a"},"run":{"path":"/b"}}`, []string{"run: want " + oneKind}},
		{"an unknown kind below", `{"timeout":{"action":{"serial":{"actions":[{"run":{}},{"jump":{}}]}}}}`,
			[]string{"timeout.action.serial.actions[1].jump: want " + oneKind}},
		{"several mistakes", `{"parallel":{"actions":[{"jump":{}},{"try":{"action":7}},{"codependent":{"actions":{}}}]}}`,
			[]string{
				"parallel.actions[0].jump: want " + oneKind,
				"parallel.actions[1].try.action: 7: want an object",
				"parallel.actions[2].codependent.actions: object: want a list",
			}},
		{"a list", `[]`, []string{"[]: want an object"}},
		{"a kind that is null", `{"run":null}`, []string{"run: null: want an object"}},
		{"a kind that is text", `{"emit_progress":"x"}`, []string{`emit_progress: "x": want an object`}},
		{"a number where text belongs", `{"run":{"path":5}}`, []string{"run.path: number: want a text"}},
		{"a text where an object belongs", `{"run":{"env":["A=B"]}}`, []string{"run.env: string: want an object"}},
		{"a text where true belongs", `{"run":{"suppress_log_output":"yes"}}`, []string{"run.suppress_log_output: string: want true or false"}},
		{"text where a number belongs", `{"timeout":{"timeout_ms":"1s"}}`, []string{"timeout.timeout_ms: string: want a whole number (int64)"}},
		{"a fraction of a millisecond", `{"timeout":{"timeout_ms":1.5}}`, []string{"timeout.timeout_ms: number 1.5: want a whole number (int64)"}},
		{"nested too deep", strings.Repeat(`{"try":{"action":`, 33) + "{}" + strings.Repeat("}}", 33),
			[]string{strings.Repeat("try.action.", 31) + "try.action: 33: want actions nested at most 32 deep"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := run("/untouched")
			err := json.Unmarshal([]byte(test.text), &got)
			if diff := cmp.Diff(test.want, lines(err)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(run("/untouched"), got); diff != "" {
				t.Errorf("a failed decoding has changed its target:\n%s", diff)
			}
		})
	}
}

func TestInvalidJSONIsAnError(t *testing.T) {
	for _, text := range []string{"", "{", `{"run":`, "\x00"} {
		var a executor.Action
		if err := a.UnmarshalJSON([]byte(text)); err == nil {
			t.Errorf("%q was decoded", text)
		}
	}
}

func TestEveryActionSurvivesItsJSON(t *testing.T) {
	golden(t, "action.json", fullAction())
}

func BenchmarkActionJSON(b *testing.B) {
	for _, depth := range []int{4, 32} {
		text, err := json.Marshal(nested(depth))
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("depth=%d", depth), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var a executor.Action
				if err := json.Unmarshal(text, &a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
