package lrp

import "github.com/diegosdk/diego/executor"

// A ModificationTag orders the versions of one record. Tasks have the same.
type ModificationTag = executor.ModificationTag
