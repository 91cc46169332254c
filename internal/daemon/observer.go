package daemon

import (
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor/manager"
)

// An observer makes metrics of what a manager observes.
type observer struct{ metrics auction.Metrics }

var _ manager.Observer = observer{}

// Created implements [manager.Observer].
func (o observer) Created(took time.Duration, err error) {
	outcome := "created"
	if err != nil {
		outcome = "failed"
	}
	o.metrics.Observe("rep_container_creation_seconds", took.Seconds(), auction.Label{Name: "outcome", Value: outcome})
}

// CheckFailed implements [manager.Observer].
func (o observer) CheckFailed(c manager.CheckConsequence) {
	o.metrics.Count("rep_checks_failed_total", 1, auction.Label{Name: "consequence", Value: string(c)})
}
