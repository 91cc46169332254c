package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/diegosdk/diego/storage"
)

// This file completes command lines. The shells' scripts ask diegoctl itself,
// so that they know nothing that could become wrong.

var scripts = map[string]string{
	"bash": `# bash completion for diegoctl
_diegoctl() {
	local IFS=$'\n' cur=${COMP_WORDS[COMP_CWORD]}
	local candidates
	candidates=$("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
	if [[ $candidates == :files ]]; then
		COMPREPLY=($(compgen -f -- "$cur"))
		compopt -o filenames 2>/dev/null
		return
	fi
	COMPREPLY=($candidates)
}
complete -F _diegoctl diegoctl
`,
	"zsh": `#compdef diegoctl
_diegoctl() {
	local -a candidates
	candidates=("${(@f)$("${words[1]}" __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ $candidates[1] == :files ]]; then
		_files
		return
	fi
	compadd -- ${candidates:#}
}
if [[ $funcstack[1] == _diegoctl ]]; then
	_diegoctl "$@"
else
	compdef _diegoctl diegoctl
fi
`,
	"fish": `# fish completion for diegoctl
function __diegoctl_complete
	set -l words (commandline -opc) (commandline -ct)
	set -l candidates ($words[1] __complete -- $words[2..-1] 2>/dev/null)
	if test "$candidates" = :files
		__fish_complete_path (commandline -ct)
		return
	end
	printf '%s\n' $candidates
end
complete -c diegoctl -f -a '(__diegoctl_complete)'
`,
}

func completion(c *call) error {
	_, err := c.out.Write([]byte(scripts[c.arg(0)]))
	return err
}

// completeWords writes what the last word of a command line can become, one on
// a line, or ":files".
func completeWords(c *call) error {
	line := c.args
	if len(line) == 0 {
		line = []string{""}
	}
	for _, candidate := range c.candidates(line[:len(line)-1], line[len(line)-1]) {
		if _, err := fmt.Fprintln(c.out, candidate); err != nil {
			return err
		}
	}
	return nil
}

const files = ":files"

// candidates are what a word can become after others.
func (c *call) candidates(before []string, word string) []string {
	// What stands there already counts for the connection.
	p := parsed{flags: map[string]string{}}
	var positional []string
	known := globals
	for rest := before; len(rest) > 0; {
		if !isFlag(rest[0]) {
			positional = append(positional, rest[0])
			if command, _ := find(positional); command != nil {
				p.command, known = command, command.all()
			}
			rest = rest[1:]
			continue
		}
		name := strings.TrimLeft(rest[0], "-")
		if f := lookup(known, name); f != nil && f.kind != kindSwitch && len(rest) == 1 {
			return c.values(p, f.kind, word)
		}
		next, err := p.flag(known, rest)
		if err != nil {
			next = rest[1:]
		}
		rest = next
	}
	if name, value, has := strings.Cut(strings.TrimLeft(word, "-"), "="); has && isFlag(word) {
		f := lookup(known, name)
		if f == nil {
			return nil
		}
		list := c.values(p, f.kind, value)
		if slices.Equal(list, []string{files}) {
			return list
		}
		for i := range list {
			list[i] = word[:len(word)-len(value)] + list[i]
		}
		return list
	}
	if strings.HasPrefix(word, "-") {
		var list []string
		for _, f := range known {
			if _, given := p.flags[f.name]; !given || f.many {
				list = append(list, "-"+f.name)
			}
		}
		return matching(list, strings.Replace(word, "--", "-", 1))
	}
	command, args := find(positional)
	if command == nil {
		return commandWords(positional, word)
	}
	if command.name == "help" {
		return commandWords(args, word)
	}
	i := len(args)
	if last := len(command.args) - 1; i > last {
		if last < 0 || !command.args[last].many {
			return nil
		}
		i = last
	}
	p.args = args
	return c.values(p, command.args[i].kind, word)
}

// values are what a word of a kind can become.
func (c *call) values(p parsed, k *kind, word string) []string {
	switch {
	case k.files:
		return []string{files}
	case k.words != nil:
		return matching(k.words, word)
	case k.complete != nil:
		ctx, cancel := context.WithTimeout(c.ctx, completionPatience)
		defer cancel()
		if p.command == nil {
			p.command = c.command
		}
		return matching(k.complete(&call{process: c.process, parsed: p, ctx: ctx, out: c.out}), word)
	}
	return nil
}

// completionPatience is how long somebody who has pressed a key waits.
const completionPatience = 2 * time.Second

// commandWords are the next words of commands.
func commandWords(before []string, word string) []string {
	var list []string
	for _, c := range commands() {
		words := strings.Fields(c.name)
		if !c.hidden && len(words) > len(before) && slices.Equal(words[:len(before)], before) && !slices.Contains(list, words[len(before)]) {
			list = append(list, words[len(before)])
		}
	}
	return matching(list, word)
}

func matching(list []string, prefix string) (out []string) {
	for _, s := range list {
		if strings.HasPrefix(s, prefix) {
			out = append(out, s)
		}
	}
	return out
}

// What there is now. Whoever does not answer has nothing.

func processGUIDs(c *call) (list []string) {
	r, err := c.remote()
	if err != nil {
		return nil
	}
	for d, err := range r.bbs.Deployments(c.ctx, storage.DeploymentFilter{Bare: true}) {
		if err != nil {
			return list
		}
		list = append(list, d.ProcessGUID)
	}
	return list
}

func taskGUIDs(c *call) (list []string) {
	r, err := c.remote()
	if err != nil {
		return nil
	}
	for t, err := range r.bbs.Tasks(c.ctx, storage.TaskFilter{}) {
		if err != nil {
			return list
		}
		list = append(list, t.GUID)
	}
	return list
}

func allGUIDs(c *call) []string { return append(processGUIDs(c), taskGUIDs(c)...) }

func definitionIDs(c *call) []string {
	r, err := c.remote()
	if err != nil {
		return nil
	}
	d, err := r.bbs.Deployment(c.ctx, c.arg(0))
	if err != nil {
		return nil
	}
	return d.DefinitionIDs()
}

func cellIDs(c *call) (list []string) {
	r, err := c.remote()
	if err != nil {
		return nil
	}
	cells, _ := r.bbs.Cells(c.ctx)
	for _, p := range cells {
		list = append(list, p.CellID)
	}
	return list
}

func domainNames(c *call) (list []string) {
	r, err := c.remote()
	if err != nil {
		return nil
	}
	domains, _ := r.bbs.Domains(c.ctx)
	for _, d := range domains {
		list = append(list, d.Domain)
	}
	return list
}
