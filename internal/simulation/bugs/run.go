package bugs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A Result is what came of a bug.
type Result struct {
	Bug Bug
	// Checker is the one that caught it, after Seeds seeds of all scenarios and
	// Took; empty if it survived them, or the time limit. A history that panics
	// is caught by "panic".
	Checker string
	Seeds   int
	Took    time.Duration
	// Output is what the campaign said.
	Output string
}

func (r Result) String() string {
	if r.Checker == "" {
		return fmt.Sprintf("%-32s SURVIVED %d seeds or %.0f s", r.Bug.Name, r.Seeds, r.Took.Seconds())
	}
	return fmt.Sprintf("%-32s %-28s %4d seeds %6.1f s", r.Bug.Name, r.Checker, r.Seeds, r.Took.Seconds())
}

// Run builds the campaign with the bug in it and plays at most so many seeds,
// for at most limit. root is the module's directory. The error says why the bug
// could not be built or played.
func (b Bug) Run(ctx context.Context, root string, seeds int, limit time.Duration) (Result, error) {
	r := Result{Bug: b, Seeds: seeds}
	dir, err := os.MkdirTemp("", "diego-bug")
	if err != nil {
		return r, err
	}
	defer os.RemoveAll(dir)
	campaign, err := b.build(ctx, root, dir)
	if err != nil {
		return r, err
	}
	began := time.Now()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := exec.CommandContext(limited, campaign, "-reduce", "0", "-seeds", fmt.Sprint(seeds)).CombinedOutput()
	r.Took, r.Output = time.Since(began), string(out)
	var exit *exec.ExitError
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return r, ctx.Err()
	case limited.Err() != nil: // it has survived for that long
	case errors.As(err, &exit):
		if r.read(); r.Checker == "" {
			r.Checker = "panic"
		}
	default:
		return r, err
	}
	return r, nil
}

// build makes the campaign with the bug in it, below dir.
func (b Bug) build(ctx context.Context, root, dir string) (campaign string, err error) {
	overlay, err := b.Overlay(root, dir)
	if err != nil {
		return "", err
	}
	campaign = filepath.Join(dir, "campaign")
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", campaign, "./internal/simulation/cmd/campaign")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("bug %s does not build: %w\n%s", b.Name, err, out)
	}
	return campaign, nil
}

// read takes the checker and the number of seeds from the line that the campaign
// has ended with.
func (r *Result) read() {
	for line := range strings.Lines(r.Output) {
		fields, found := strings.CutPrefix(line, "failed: ")
		if !found {
			continue
		}
		for field := range strings.FieldsSeq(fields) {
			switch name, value, _ := strings.Cut(field, "="); name {
			case "checker":
				r.Checker = value
			case "seeds":
				_, _ = fmt.Sscan(value, &r.Seeds)
			}
		}
	}
}

// Root is the module's directory, found from the working directory.
func Root() (string, error) {
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out))), nil
}
