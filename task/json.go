package task

import (
	"encoding/json"
	"time"

	"github.com/diegosdk/diego/executor"
)

// plain is a Task without its methods, and so with the JSON form that its
// fields' tags say.
type plain Task

// wireTask is the JSON form of a Task. Its own members hide those of plain.
type wireTask struct {
	plain
	CreatedAt        executor.Timestamp `json:"created_at"`
	UpdatedAt        executor.Timestamp `json:"updated_at"`
	FirstCompletedAt executor.Timestamp `json:"first_completed_at,omitzero"`
}

// MarshalJSON fails on a state that no record has and on a time that does not
// fit, with an *executor.ValidationError inside.
func (t Task) MarshalJSON() ([]byte, error) {
	var v executor.Validator
	checkTime(&v, "created_at", t.CreatedAt)
	checkTime(&v, "updated_at", t.UpdatedAt)
	checkTime(&v, "first_completed_at", t.FirstCompletedAt)
	if err := v.Err(); err != nil {
		return nil, err
	}
	return json.Marshal(wireTask{
		plain(t), executor.Timestamp(t.CreatedAt), executor.Timestamp(t.UpdatedAt), executor.Timestamp(t.FirstCompletedAt),
	})
}

// UnmarshalJSON reads what MarshalJSON writes. It replaces all of t, or fails
// and leaves t as it was. What it reads may still break an invariant; see
// [Task.Validate].
func (t *Task) UnmarshalJSON(data []byte) error {
	var w wireTask
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*t = Task(w.plain)
	t.CreatedAt = time.Time(w.CreatedAt)
	t.UpdatedAt = time.Time(w.UpdatedAt)
	t.FirstCompletedAt = time.Time(w.FirstCompletedAt)
	return nil
}

func checkTime(v *executor.Validator, field string, t time.Time) {
	v.Check(t.IsZero() || executor.Recordable(t), field, t, "a time between 1970 and 2262, or none")
}
