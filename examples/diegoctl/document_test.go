package main

import (
	"os"
	"testing"
)

const document = "../../docs/cli.md"

func TestTheDocumentIsFresh(t *testing.T) {
	if *update {
		if err := os.WriteFile(document, []byte(markdown()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if read(t, document) != markdown() {
		t.Errorf("%s is stale; go generate ./examples/diegoctl renders it", document)
	}
}

func TestTheTableOfCommandsIsSound(t *testing.T) {
	names := map[string]bool{}
	for _, c := range commands() {
		if names[c.name] {
			t.Errorf("%q is there twice", c.name)
		}
		names[c.name] = true
		if !c.hidden && c.help == "" || c.run == nil {
			t.Errorf("%q has no help or does nothing", c.name)
		}
		for i, a := range c.args {
			if (a.optional || a.many) && i < len(c.args)-1 {
				t.Errorf("%q: only its last argument can be optional or several", c.name)
			}
		}
		flags := map[string]bool{}
		for _, f := range c.all() {
			if flags[f.name] || f.help == "" || f.kind == nil {
				t.Errorf("%q: its flag -%s is there twice, or says nothing", c.name, f.name)
			}
			flags[f.name] = true
			if f.def != "" && f.kind.check != nil && f.kind.check(f.def) != "" {
				t.Errorf("%q: the default of -%s is refused", c.name, f.name)
			}
		}
	}
	for _, s := range kindShell.words {
		if scripts[s] == "" {
			t.Errorf("there is no script for %s", s)
		}
	}
}
