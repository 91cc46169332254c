package main

import (
	"context"
	"strings"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/rep"
)

// closed is a cell that tells a consumer nothing.
type closed struct{ rep.API }

func (closed) State(context.Context) (auction.CellState, error) {
	return auction.CellState{}, &httpapi.ForbiddenError{Name: "me", Call: "State", Why: "a certificate with one of the organizational units diego-operator is wanted"}
}

func TestCellsThatMayNotBeAskedAreNotTakenForSilent(t *testing.T) {
	w := newWorld(t)
	r := *w.local()
	r.cell = func(bbs.CellPresence) (rep.API, error) { return closed{}, nil }
	got := w.run(&r, "", "cells")
	if got.code != exitOK || strings.Count(got.stdout, "forbidden") != 3 || strings.Contains(got.stdout, "no answer") ||
		!strings.Contains(got.stdout, "that takes an operator's (--cert and --key") {
		t.Errorf("exit %d\n%s%s", got.code, got.stdout, got.stderr)
	}
}
