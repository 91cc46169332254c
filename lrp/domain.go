package lrp

import (
	"time"

	"github.com/diegosdk/diego/executor"
)

// A Domain is a group of desired LRPs. While it is fresh, its consumer vouches
// that they are complete and up to date (002 §Domain Freshness). Surplus
// instances of a domain that is not fresh are never stopped.
type Domain struct {
	Name string `json:"domain"`
	// ExpiresAt is when the domain stops being fresh; zero means never.
	ExpiresAt time.Time `json:"-"` // see MarshalJSON
}

// Validate checks the name: 1 to 255 bytes without control characters. The error
// is an *executor.ValidationError.
func (d Domain) Validate() error {
	var v executor.Validator
	v.Name("domain", d.Name)
	v.OneLine("domain", d.Name)
	return v.Err()
}

// checkNewDomain refuses names that an earlier release accepted. Records with
// such a name live on.
func checkNewDomain(name string) error {
	var v executor.Validator
	v.OneLine("domain", name)
	return v.Err()
}

// NewDomain returns the domain that a consumer makes fresh at now: for ttl, or
// for ever if ttl is 0 or ends after the last time that can be recorded, in the
// year 2262. With a negative ttl the domain has stopped being fresh.
func NewDomain(name string, ttl time.Duration, now time.Time) Domain {
	d := Domain{Name: name}
	if end := now.Add(ttl).UTC().Round(0); ttl < 0 || ttl > 0 && executor.Recordable(end) {
		d.ExpiresAt = end
	}
	return d
}

// Fresh reports whether the domain is fresh at now.
func (d Domain) Fresh(now time.Time) bool {
	return d.ExpiresAt.IsZero() || now.Before(d.ExpiresAt)
}
