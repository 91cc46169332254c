package task

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

func TestTheConsumerDecidesWhatAnAnswerMeans(t *testing.T) {
	for _, test := range []struct {
		status []int
		want   CallbackAction
	}{
		{[]int{200, 201, 202, 204, 299, 410}, Delivered},
		{[]int{0, 408, 425, 429, 500, 501, 502, 503, 504, 599}, TryAgain},
		{[]int{301, 307, 400, 401, 403, 404, 405, 409, 411, 422, 451, 499}, LeaveIt},
		{[]int{-1, 1, 100, 199, 600, 999, math.MaxInt, math.MinInt}, LeaveIt},
	} {
		for _, status := range test.status {
			got := CallbackPolicy{}.Next(CallbackOutcome{Status: status}, 1)
			if got.Action != test.want || got.Reason == "" || (got.Wait > 0) != (got.Action == TryAgain) {
				t.Errorf("%d: %+v, want %v", status, got, test.want)
			}
		}
	}
}

func TestOnlySuccessAndGoneMakeATaskGoAway(t *testing.T) {
	for status := -1000; status < 2000; status++ {
		got := CallbackPolicy{}.Next(CallbackOutcome{Status: status}, 1)
		if want := status >= 200 && status <= 299 || status == 410; (got.Action == Delivered) != want {
			t.Errorf("%d: %+v", status, got)
		}
	}
}

func TestWaitsDoubleUntilTheAttemptsAreUsedUp(t *testing.T) {
	tests := []struct {
		name   string
		policy CallbackPolicy
		waits  []time.Duration // after which LeaveIt
	}{
		{"default", CallbackPolicy{}, []time.Duration{time.Second, 2 * time.Second}},
		{"more attempts", CallbackPolicy{MaxAttempts: 6}, []time.Duration{1e9, 2e9, 4e9, 4e9, 4e9}},
		{"one attempt", CallbackPolicy{MaxAttempts: 1}, nil},
		{"no second attempt", CallbackPolicy{MaxAttempts: -1}, nil},
		{"odd maximum", CallbackPolicy{MaxAttempts: 4, MinBackoff: 4e9, MaxBackoff: 7e9}, []time.Duration{4e9, 7e9, 7e9}},
		{"small maximum", CallbackPolicy{MinBackoff: 9e9, MaxBackoff: 7e9}, []time.Duration{7e9, 7e9}},
		{"no wait", CallbackPolicy{MinBackoff: -1}, []time.Duration{0, 0}},
		{"longest wait", CallbackPolicy{MaxAttempts: 3, MinBackoff: math.MaxInt64/2 + 1, MaxBackoff: math.MaxInt64},
			[]time.Duration{math.MaxInt64/2 + 1, math.MaxInt64}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for i, want := range test.waits {
				if got := test.policy.Next(CallbackOutcome{Status: 503}, i+1); got.Action != TryAgain || got.Wait != want {
					t.Errorf("attempt %d: %+v, want %v", i+1, got, want)
				}
			}
			last := len(test.waits) + 1
			got := test.policy.Next(CallbackOutcome{Status: 503}, last)
			if got.Action != LeaveIt || got.Wait != 0 || !strings.HasPrefix(got.Reason, "the consumer is in trouble, ") {
				t.Errorf("attempt %d: %+v", last, got)
			}
		})
	}
	if got := (CallbackPolicy{}).Next(CallbackOutcome{}, 0); got.Wait != time.Second {
		t.Errorf("attempt 0 is taken for another than the first: %+v", got)
	}
}

func TestByDefaultACallbackIsOverBeforeTheTaskIsDemoted(t *testing.T) {
	longest := CallbackPolicy{}.Longest()
	if longest != 27*time.Second || longest >= (Policy{}).withDefaults().StaleResolving {
		t.Errorf("%v", longest)
	}
	if got := (CallbackPolicy{MaxAttempts: 1, Timeout: time.Minute}).Longest(); got != time.Minute {
		t.Errorf("%v", got)
	}
}

func TestCallbackRulesCanBeKeptAndChanged(t *testing.T) {
	CallbackRules()[1].Action = 0
	if CallbackRules()[1].Action != Delivered {
		t.Error("CallbackRules hands out what Next looks at")
	}
}

func TestTheCallbackTellsWhatTheTaskCameTo(t *testing.T) {
	for _, test := range []struct {
		end  Command
		want string
	}{
		{completeAlpha, `{"task_guid":"task-1","failed":false,"failure_reason":"","result":"42","annotation":"nightly","created_at":"2026-02-03T04:05:06.000000007Z"}`},
		{Cancel{}, `{"task_guid":"task-1","failed":true,"failure_reason":"cancelled","result":"","annotation":"nightly","created_at":"2026-02-03T04:05:06.000000007Z"}`},
	} {
		response := follow(t, nil, desire(), startAlpha, test.end).CallbackResponse()
		if got := toJSON(t, response); got != test.want {
			t.Errorf("got  %s\nwant %s", got, test.want)
		}
		read := CallbackResponse{Annotation: "left over"}
		if err := json.Unmarshal([]byte(test.want), &read); err != nil || read != response {
			t.Errorf("read %+v, %v", read, err)
		}
	}
	kept := CallbackResponse{TaskGUID: "kept"}
	if err := kept.UnmarshalJSON([]byte(`{"task_guid":"a","created_at":"now"}`)); err == nil || kept.TaskGUID != "kept" {
		t.Errorf("%+v, %v", kept, err)
	}
	if _, err := json.Marshal(CallbackResponse{CreatedAt: time.Unix(-1, 0)}); !errors.Is(err, executor.ErrInvalid) {
		t.Error(err)
	}
}
