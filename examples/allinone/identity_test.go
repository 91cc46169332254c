package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
)

func TestTheAuthorityOfContainersOutlivesARunAndItsKeyIsNotMounted(t *testing.T) {
	dir := t.TempDir()
	trusted := filepath.Join(dir, "trusted")
	var before string
	for range 2 {
		var p cellPlan
		if err := p.identify(filepath.Join(dir, "identity"), trusted, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(p.trusted)
		if err != nil || len(files) != 1 || files[0].Name() != "ca.pem" {
			t.Errorf("containers see %v, %v", files, err)
		}
		ca, err := os.ReadFile(filepath.Join(p.trusted, "ca.pem"))
		if err != nil || p.identity == nil || before != "" && string(ca) != before {
			t.Errorf("the authority is %v, %v, as before: %t", p.identity, err, string(ca) == before)
		}
		before = string(ca)
	}
}
