package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/storage"
)

// completionPatience is how long a shell waits for names from the server.
const completionPatience = 2 * time.Second

// among completes with names from the server that the flags name. If the server
// does not answer, there are none.
func (p *process) among(list func(c *call, r *remote) []string) cli.Values {
	return func(cmd *cobra.Command, args []string) []string {
		c := p.call(cmd, args)
		ctx, cancel := context.WithTimeout(c.ctx, completionPatience)
		defer cancel()
		c.ctx = ctx
		r, err := c.remote()
		if err != nil {
			return nil
		}
		return list(c, r)
	}
}

func (p *process) processGUIDs() cli.Values { return p.among(processGUIDs) }

func (p *process) taskGUIDs() cli.Values { return p.among(taskGUIDs) }

func (p *process) allGUIDs() cli.Values {
	return p.among(func(c *call, r *remote) []string { return append(processGUIDs(c, r), taskGUIDs(c, r)...) })
}

func processGUIDs(c *call, r *remote) (list []string) {
	for d, err := range r.bbs.Deployments(c.ctx, storage.DeploymentFilter{Bare: true}) {
		if err != nil {
			break
		}
		list = append(list, d.ProcessGUID)
	}
	return list
}

func taskGUIDs(c *call, r *remote) (list []string) {
	for t, err := range r.bbs.Tasks(c.ctx, storage.TaskFilter{Bare: true}) {
		if err != nil {
			break
		}
		list = append(list, t.GUID)
	}
	return list
}

func (p *process) definitionIDs() cli.Values {
	return p.among(func(c *call, r *remote) []string {
		d, err := r.bbs.Deployment(c.ctx, c.arg(0))
		if err != nil {
			return nil
		}
		ids := d.DefinitionIDs()
		revisions, _ := r.bbs.Revisions(c.ctx, c.arg(0))
		for _, v := range revisions {
			if !slices.Contains(ids, v.DefinitionID) {
				ids = append(ids, v.DefinitionID)
			}
		}
		return ids
	})
}

func (p *process) cellIDs() cli.Values {
	return p.among(func(c *call, r *remote) (list []string) {
		cells, _ := r.bbs.Cells(c.ctx)
		for _, p := range cells {
			list = append(list, p.CellID)
		}
		return list
	})
}

func (p *process) domainNames() cli.Values {
	return p.among(func(c *call, r *remote) (list []string) {
		domains, _ := r.bbs.Domains(c.ctx)
		for _, d := range domains {
			list = append(list, d.Domain)
		}
		return list
	})
}
