package lrp

import (
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/enum"
)

// A RolloutPolicy says how the rollouts of one process proceed. The zero policy
// is that of 003: one index at a time, and an old instance is stopped as soon
// as the new one is RUNNING.
//
// Canary and OnFailure need a definition to go back to. They have no effect
// while no definition has proved healthy yet.
type RolloutPolicy struct {
	// MinHealthy is how long a new instance must have been RUNNING before the one
	// that it replaces is stopped; at that time it must be ready for traffic. The
	// new definition counts as healthy from then on. 0 means at once, ready or not;
	// the limit is 1 h.
	MinHealthy time.Duration `json:"min_healthy_nanoseconds,omitempty"`
	// MaxInFlight is at how many indices at a time the new definition may have an
	// instance that does not run yet or has still to prove healthy (default 1; at
	// most 100,000).
	MaxInFlight int `json:"max_in_flight,omitempty"`
	// Canary is how many indices, from 0 on, the new definition gets before the
	// rollout waits until it is confirmed. Until then the old definition stays the
	// healthy one. 0 means that nothing is to be confirmed.
	Canary int `json:"canary,omitempty"`
	// OnFailure is what happens if the new definition fails: one of its instances
	// crashes more often than it restarts at once, or does not prove healthy within
	// the Deadline. A definition that has proved healthy does not fail any more,
	// except that a crash still counts while it is a canary.
	OnFailure OnFailure `json:"on_failure,omitempty"`
	// Deadline is how long the rollout waits for one index, from the creation of
	// its new instance's record or, if that was later, from when the rollout was
	// resumed. After that, the new definition has failed or, if it has proved
	// healthy elsewhere, the rollout goes on without the index. The default is
	// Policy.RolloutGiveUp plus MinHealthy; a value must be above MinHealthy and
	// at most 24 h.
	Deadline time.Duration `json:"deadline_nanoseconds,omitempty"`
}

// MaxMinHealthy and MaxRolloutDeadline limit RolloutPolicy.MinHealthy and
// RolloutPolicy.Deadline.
const (
	MaxMinHealthy      = time.Hour
	MaxRolloutDeadline = 24 * time.Hour
)

// An OnFailure is what happens if a new definition fails.
type OnFailure uint8

// What may happen if a new definition fails.
const (
	// KeepTrying goes on with the rollout (003 §Failing new LRP definition).
	KeepTrying OnFailure = iota
	// PauseOnFailure pauses the rollout until it is resumed or aborted.
	PauseOnFailure
	// RollBackOnFailure makes the definition from which the rollout began active
	// again.
	RollBackOnFailure
)

var onFailures = enum.Names[OnFailure]{KeepTrying: "KEEP_TRYING", PauseOnFailure: "PAUSE", RollBackOnFailure: "ROLL_BACK"}

// String is "KEEP_TRYING", "PAUSE" or "ROLL_BACK".
func (o OnFailure) String() string { return onFailures.Of(o) }

// MarshalText fails on a value that is none of the constants.
func (o OnFailure) MarshalText() ([]byte, error) { return onFailures.Marshal("on_failure", o) }

// UnmarshalText accepts only the three words, upper case.
func (o *OnFailure) UnmarshalText(text []byte) error {
	return onFailures.Unmarshal("on_failure", o, text)
}

func (p *RolloutPolicy) check(v *executor.Validator) {
	if p == nil {
		return
	}
	v.Check(p.MinHealthy >= 0 && p.MinHealthy <= MaxMinHealthy, "min_healthy_nanoseconds", p.MinHealthy, "0 to 1h")
	v.Check(p.MaxInFlight >= 0 && p.MaxInFlight <= MaxInstances, "max_in_flight", p.MaxInFlight, "0 to 100000")
	v.Check(p.Canary >= 0 && p.Canary <= MaxInstances, "canary", p.Canary, "0 to 100000")
	v.Check(p.OnFailure <= RollBackOnFailure, "on_failure", p.OnFailure, "KEEP_TRYING, PAUSE or ROLL_BACK")
	v.Check(p.Deadline >= 0 && p.Deadline <= MaxRolloutDeadline, "deadline_nanoseconds", p.Deadline, "0 to 24h")
	if p.Deadline > 0 {
		v.Check(p.Deadline > p.MinHealthy, "deadline_nanoseconds", p.Deadline, "0, or more than min_healthy_nanoseconds")
	}
}

// orZero is the zero policy without one.
func (p *RolloutPolicy) orZero() RolloutPolicy {
	if p == nil {
		return RolloutPolicy{}
	}
	return *p
}

func (p RolloutPolicy) maxInFlight() int {
	return max(1, p.MaxInFlight)
}

// patience is how long a rollout waits for one index.
func (p RolloutPolicy) patience(giveUp time.Duration) time.Duration {
	return orDefault(p.Deadline, orDefault(giveUp, defaultRolloutGiveUp)+p.MinHealthy)
}
