package lrp

import (
	"encoding/json"

	"github.com/diegosdk/diego/executor"
)

// In JSON, times are nanoseconds since 1970 UTC and 0 is no time (002
// §since).

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
