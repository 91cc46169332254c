package lrp

import "github.com/diegosdk/diego/executor"

// A Cause says why something changed: the command and what it knew.
type Cause = executor.Cause
