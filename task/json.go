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
	CreatedAt        int64 `json:"created_at"`
	UpdatedAt        int64 `json:"updated_at"`
	FirstCompletedAt int64 `json:"first_completed_at,omitempty"`
}

// MarshalJSON writes times as nanoseconds since 1970, and the zero time as 0.
// It fails on a state that no record has and on a time that does not fit, with
// an *executor.ValidationError inside.
func (t Task) MarshalJSON() ([]byte, error) {
	var v executor.Validator
	w := wireTask{
		plain:            plain(t),
		CreatedAt:        nanoseconds(&v, "created_at", t.CreatedAt),
		UpdatedAt:        nanoseconds(&v, "updated_at", t.UpdatedAt),
		FirstCompletedAt: nanoseconds(&v, "first_completed_at", t.FirstCompletedAt),
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads what MarshalJSON writes. It replaces all of t, and
// leaves it alone if it fails. What it reads may still break an invariant; see
// [Task.Validate].
func (t *Task) UnmarshalJSON(data []byte) error {
	var w wireTask
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	*t = Task(w.plain)
	t.CreatedAt = instant(w.CreatedAt)
	t.UpdatedAt = instant(w.UpdatedAt)
	t.FirstCompletedAt = instant(w.FirstCompletedAt)
	return nil
}

const wantTime = "a time between 1970 and 2262, or none"

func nanoseconds(v *executor.Validator, field string, t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	n := t.UnixNano()
	v.Check(n > 0 && time.Unix(0, n).Equal(t), field, t, wantTime)
	return n
}

func instant(nanoseconds int64) time.Time {
	if nanoseconds == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanoseconds).UTC()
}
