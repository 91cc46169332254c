package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/diegosdk/diego/examples/diegoctl/internal/cli"
	"github.com/diegosdk/diego/internal/version"
)

const about = "diegoctl operates a Diego: long-running processes, tasks, and the cells that they run on."

// run carries out a command line and returns the exit code.
func run(ctx context.Context, line []string, p *process) int {
	root := p.root()
	root.SetArgs(line)
	if cmd, err := cli.Check(root, line); err != nil {
		return p.exit(cmd, err)
	}
	cmd, err := root.ExecuteContextC(ctx)
	return p.exit(cmd, err)
}

// root is diegoctl with all its commands.
func (p *process) root() *cobra.Command {
	program, goVersion := version.Of()
	root := cli.Group(&cobra.Command{Use: "diegoctl", Long: about, Version: program + ", " + goVersion},
		applyCommand(p), lrpCommands(p), deploymentCommands(p), taskCommands(p),
		instancesCommand(p), cellsCommand(p), cellCommands(p), drainCommand(p), domainsCommand(p), domainCommands(p),
		eventsCommand(p), logsCommand(p), execCommand(p), copyCommand(p), timelineCommand(p), topCommand(p), consoleCommand(p), lockCommands(p), planCommand(p), convergeCommand(p), versionCommand(p),
	)
	wrong := cli.WithPersistent(root, p.env, globalFlags)
	root.PersistentPreRunE = func(*cobra.Command, []string) error { return wrong() }
	root.SetIn(p.stdin)
	root.SetOut(p.stdout)
	root.SetErr(p.stderr)
	root.SetVersionTemplate("{{.Name}} {{.Version}}\n")
	cli.Root(root)
	root.SetUsageTemplate(root.UsageTemplate() + "{{if not .HasParent}}\nExit codes:\n" + codeTable() + "{{end}}")
	return root
}

func versionCommand(p *process) *cobra.Command {
	return &cobra.Command{Use: "version", Short: "Show the version of diegoctl", RunE: p.runs(func(c *call) error {
		program, goVersion := version.Of()
		return c.Say(map[string]string{"version": program, "go": goVersion}, "diegoctl %s, %s", program, goVersion)
	})}
}
