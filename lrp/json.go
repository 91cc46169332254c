package lrp

import (
	"encoding/json"

	"github.com/diegosdk/diego/executor"
)

// In JSON, times are nanoseconds since 1970 UTC and 0 is no time (002
// §since). The types here are the records without their methods, with their
// times in that form.

type actualFields ActualLRP

type actualJSON struct {
	*actualFields
	Since        int64 `json:"since"`
	RunningSince int64 `json:"running_since,omitempty"`
	ExpiresAt    int64 `json:"expires_at,omitempty"`
}

// MarshalJSON writes the record as one flat object.
func (r ActualLRP) MarshalJSON() ([]byte, error) {
	return json.Marshal(actualJSON{
		actualFields: (*actualFields)(&r),
		Since:        executor.Nanoseconds(r.Since),
		RunningSince: executor.Nanoseconds(r.RunningSince),
		ExpiresAt:    executor.Nanoseconds(r.ExpiresAt),
	})
}

// UnmarshalJSON reads what MarshalJSON wrote. Unknown states and presences and
// a missing state are errors; whether the record makes sense is for Validate
// to say.
func (r *ActualLRP) UnmarshalJSON(data []byte) error {
	var fields actualFields
	w := actualJSON{actualFields: &fields}
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	if _, err := fields.State.MarshalText(); err != nil {
		return err
	}
	fields.Since = executor.Instant(w.Since)
	fields.RunningSince = executor.Instant(w.RunningSince)
	fields.ExpiresAt = executor.Instant(w.ExpiresAt)
	*r = ActualLRP(fields)
	return nil
}

type domainJSON struct {
	Name      string `json:"domain"`
	ExpiresAt int64  `json:"expires_at,omitempty"`
}

// MarshalJSON writes expires_at as nanoseconds, and leaves it out for never.
func (d Domain) MarshalJSON() ([]byte, error) {
	return json.Marshal(domainJSON{d.Name, executor.Nanoseconds(d.ExpiresAt)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Domain) UnmarshalJSON(data []byte) error {
	var w domainJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	d.Name, d.ExpiresAt = w.Name, executor.Instant(w.ExpiresAt)
	return nil
}
