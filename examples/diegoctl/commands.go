package main

// instanceIndex is the argument after a guid that makes an instance of it. Both
// may be one word: see splitInstance.
const instanceIndex = "INDEX"

// commands are all that diegoctl does, in the order of help.
func commands() []command {
	var (
		domainFlag = flagSpec{name: "domain", kind: kindDomain, many: true, help: "only what is in this domain; may be repeated"}
		cellFlag   = flagSpec{name: "cell", kind: kindCell, many: true, help: "only what is on this cell; may be repeated"}
		guid       = arg{name: "GUID", kind: kindProcess}
		index      = arg{name: instanceIndex, kind: kindNumber}
	)
	return []command{
		{
			name: "lrp create", help: "desire a long-running process", run: lrpCreate,
			flags:    append([]flagSpec{fileFlag("the JSON of a desired LRP")}, waitFlags...),
			examples: []string{"lrp create -f greeter.json -wait"},
		},
		{
			name: "lrp update", args: []arg{guid}, help: "change what needs no restart", run: lrpUpdate,
			more: "For anything else give the process another definition: see deployment update.",
			flags: append([]flagSpec{
				{name: "f", kind: kindFile, help: "a spec file, the JSON of an update; - is standard input"},
				{name: "instances", kind: kindNumber, help: "how many instances are wanted"},
				{name: "annotation", kind: kindText, help: "free text"},
				{name: "route", kind: kindText, value: "ROUTER=JSON", many: true, help: "what a router is told; may be repeated, and replaces all routes"},
			}, waitFlags...),
			examples: []string{`lrp update web -route 'http=[{"hostname":"web.example.com","port":8080}]'`},
		},
		{
			name: "lrp scale", args: []arg{guid, {name: "N", kind: kindNumber}}, help: "change the number of instances", run: lrpScale,
			flags: waitFlags, examples: []string{"lrp scale greeter 5 -wait"},
		},
		{
			name: "lrp get", args: []arg{guid}, help: "show a process and its instances", run: lrpGet, watchable: true,
			more: "With -o json it is the desired LRP, which lrp create reads.",
		},
		{
			name: "lrp list", help: "list what is desired, and how much of it runs", run: lrpList, watchable: true,
			flags: []flagSpec{domainFlag},
		},
		{
			name: "lrp delete", args: []arg{{name: "GUID", kind: kindProcess, many: true}}, help: "end processes; their instances stop", run: lrpDelete,
		},
		{
			name: "lrp restart-instance", args: []arg{guid, index}, help: "stop what runs at an index, so that it starts again", run: lrpRestart,
			flags: []flagSpec{{name: "definition", kind: kindText, value: "ID", help: "the instance of this definition (default: of the active one)"}},
		},

		{
			name: "deployment create", help: "desire a process with a definition of one's own naming", run: deploymentCreate,
			flags: append([]flagSpec{fileFlag("the JSON of a deployment's definition")}, waitFlags...),
		},
		{
			name: "deployment update", help: "make a deployment what a file says", run: deploymentUpdate,
			more:     "A definition_id that the deployment does not have yet begins a rollout to that definition, one instance after the other. A definition itself never changes. What was made with lrp create is a deployment too.",
			flags:    append([]flagSpec{fileFlag("the JSON of a deployment's definition")}, waitFlags...),
			examples: []string{"deployment update -f deployment.json -wait"},
		},
		{
			name: "deployment activate", args: []arg{guid, {name: "DEFINITION", kind: &kind{value: "ID", complete: definitionIDs}}},
			help: "roll out a definition that the deployment has, such as the one before", run: deploymentActivate, flags: waitFlags,
		},
		{
			name: "deployment status", args: []arg{guid}, help: "show how far a rollout is, and what holds it up", run: deploymentStatusOf, watchable: true,
		},

		{
			name: "task run", help: "run a task", run: taskRun,
			more: "With -wait it shows the task when it has ended, and exits with 1 if it failed.",
			flags: append([]flagSpec{
				fileFlag("the JSON of a task"),
				{name: "guid", kind: kindText, value: "GUID", help: "its guid, in place of the file's"},
			}, waitFlags...),
			examples: []string{"task run -f task.json -wait"},
		},
		{name: "task get", args: []arg{{name: "GUID", kind: kindTask}}, help: "show a task and its result", run: taskGet, watchable: true},
		{
			name: "task list", help: "list tasks", run: taskList, watchable: true,
			flags: []flagSpec{domainFlag, cellFlag, {name: "state", kind: kindTState, many: true, help: "only those in this state; may be repeated"}},
		},
		{name: "task cancel", args: []arg{{name: "GUID", kind: kindTask}}, help: "end a task as failed", run: taskCancel},
		{
			name: "task delete", args: []arg{{name: "GUID", kind: kindTask, many: true}}, help: "remove tasks that have ended", run: taskDelete,
			more: "Cancel a task first that still runs. One that somebody else is dealing with, who was faster, is refused unless it is RESOLVING.",
		},

		{
			name: "instances", args: []arg{{name: "GUID", kind: kindProcess, optional: true}}, help: "list instances, of one process or of all", run: instances, watchable: true,
			flags: []flagSpec{
				domainFlag, cellFlag,
				{name: "state", kind: kindLRPState, many: true, help: "only those in this state; may be repeated"},
				{name: "all", kind: kindSwitch, help: "all records of each index: also those of suspect and evacuating cells and of other definitions"},
			},
			examples: []string{"instances -watch", "instances -state CRASHED -o json"},
		},
		{
			name: "cells", help: "list the cells that are present, and what they have room for", run: cells, watchable: true,
		},
		{
			name: "cell doctor", help: "say what this host can do for a cell, and what would help", run: cellDoctor,
			more: "It asks no server. As root it makes a container, starts something in it and deletes it; like a cell, it loads kernel modules for that and turns IPv4 forwarding on. It exits with 1 if this host cannot run real containers.",
			flags: []flagSpec{{name: "dir", kind: kindFile, value: "DIRECTORY",
				help: "where the cell is to keep its containers, as the file system matters (default: that of temporary files)"}},
			examples: []string{"cell doctor -dir /var/lib/diego", "cell doctor -o json"},
		},
		{name: "domains", help: "list domains, and whether they are fresh", run: domains, watchable: true},
		{
			name: "domain upsert", args: []arg{{name: "NAME", kind: kindDomain}}, help: "say that what is desired in a domain is complete", run: domainUpsert,
			more:  "Only in a fresh domain are instances stopped that are not desired.",
			flags: []flagSpec{{name: "ttl", kind: kindTime, def: "0s", help: "for how long; 0s is for ever"}},
		},
		{
			name: "events", help: "tell what happened, or with -follow what happens", run: events,
			flags: []flagSpec{
				{name: "follow", kind: kindSwitch, help: "go on until interrupted, beginning now"},
				{name: "after", kind: kindNumber, value: "EVENT", help: "begin after the event of this number"},
				{name: "kind", kind: kindEvent, many: true, help: "only events of this kind, such as actual_lrp_crashed; may be repeated"},
				{name: "process", kind: kindProcess, many: true, help: "only about this process; may be repeated"},
				{name: "task", kind: kindTask, many: true, help: "only about this task; may be repeated"},
				cellFlag, domainFlag,
				{name: "groups", kind: kindSwitch, help: "also the events for routers and for who knows only desired LRPs, which say the same again; with -o json they always come"},
			},
			examples: []string{"events -follow", "events -process web -kind actual_lrp_crashed -o json"},
		},
		{
			name: "logs", args: []arg{{name: "GUID", kind: kindAny}, {name: instanceIndex, kind: kindNumber, optional: true}},
			help: "show what an instance, all instances of a process, or a task writes", run: logs,
			more: "Following one instance goes on in the container that takes the place of a crashed one. Of a container that is gone, its cell keeps the end of what it wrote for a while. On a terminal, control characters are shown as \\x1b; a pipe or a file gets everything as it was written.",
			flags: []flagSpec{
				{name: "follow", kind: kindSwitch, help: "wait for more until interrupted"},
				{name: "previous", kind: kindSwitch, help: "the container that an instance had before the present one"},
				{name: "stream", kind: kindStream, def: "stdout", help: "stdout, stderr or health, which has what checks of health say"},
			},
			examples: []string{"logs greeter/0 -follow", "logs greeter 0", "logs greeter/0 -previous", "logs sum"},
		},
		{
			name: "timeline", args: []arg{guid, index}, help: "tell all that happened to an instance, and why", run: timeline, watchable: true,
			examples: []string{"timeline web 0", "timeline web/0"},
		},
		{
			name: "plan", help: "say where work would go, and if nowhere, why", run: plan,
			more: "Nothing is desired and nothing is sent to a cell. It exits with 1 if anything goes nowhere.",
			flags: []flagSpec{
				fileFlag("of an LRP, a deployment or a task"),
				{name: "instances", kind: kindNumber, help: "so many instances, in place of the file's number"},
			},
			examples: []string{"plan -f web.json", "plan -f web.json -instances 100"},
		},
		{
			name: "drain", args: []arg{{name: "CELL", kind: kindCell}}, help: "empty a cell: its instances run elsewhere before they stop here", run: drain,
			flags: waitFlags, examples: []string{"drain cell-2 -wait -for 15m"},
		},
		{name: "converge", help: "begin a pass of convergence at once", run: convergeNow},

		{
			name: "completion", args: []arg{{name: "SHELL", kind: kindShell}}, help: "print a script that completes command lines", run: completion,
			examples: []string{"completion bash > /etc/bash_completion.d/diegoctl", "completion zsh > \"${fpath[1]}/_diegoctl\"", "completion fish > ~/.config/fish/completions/diegoctl.fish"},
		},
		{name: "version", help: "say which version this is", run: sayVersion},
		{
			name: "help", args: []arg{{name: "COMMAND", kind: &kind{value: "COMMAND"}, optional: true, many: true}}, help: "say more about a command", run: helpCommand,
		},
		{name: "__complete", args: []arg{{name: "WORD", kind: kindText, optional: true, many: true}}, hidden: true, run: completeWords},
	}
}
