package main

import (
	"cmp"
	"os"

	"github.com/diegosdk/diego/internal/daemon"
)

// cellDoctor is the only command about the host that it runs on.
func cellDoctor(c *call) error {
	e := c.examine(c.ctx, cmp.Or(c.flag("dir"), os.TempDir()))
	v := &view{heading: []string{"WHAT", "STATE", "FOUND"}, doc: e, notes: []string{e.Verdict}}
	styles := map[daemon.FindingState]style{daemon.FindingOK: green, daemon.FindingLacking: yellow, daemon.FindingFatal: red}
	for _, f := range e.Findings {
		v.add(f, text(f.Name), cell{string(f.State), styles[f.State]}, text(f.Text()))
	}
	if err := c.show(v); err != nil {
		return err
	}
	if !e.RealContainers {
		return &failedError{}
	}
	return nil
}
