package lrp

import (
	"encoding/json"
	"time"

	"github.com/diegosdk/diego/executor"
)

type domainJSON struct {
	Name      string             `json:"domain"`
	ExpiresAt executor.Timestamp `json:"expires_at,omitzero"`
}

// MarshalJSON omits expires_at for never.
func (d Domain) MarshalJSON() ([]byte, error) {
	return json.Marshal(domainJSON{d.Name, executor.Timestamp(d.ExpiresAt)})
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Domain) UnmarshalJSON(data []byte) error {
	var w domainJSON
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	d.Name, d.ExpiresAt = w.Name, time.Time(w.ExpiresAt)
	return nil
}
