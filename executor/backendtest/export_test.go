package backendtest

import "time"

// SetPatience makes the suite give up sooner.
func SetPatience(d time.Duration) { patience = d }
