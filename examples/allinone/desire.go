package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/diegosdk/diego/examples/allinone/sample"
	"github.com/diegosdk/diego/internal/specfile"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// sampleInstances is how many instances of the sample app there are at first.
const sampleInstances = 3

// minHealthy is how long a new instance of an LRP without a rollout policy must
// have been healthy before it replaces an old one, as with diegoctl.
const minHealthy = 10 * time.Second

// readLRP reads the file that --lrp names, or nothing if it names none.
func readLRP(path string) (*lrp.DesiredLRP, error) {
	if path == "" {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--lrp: %w", err)
	}
	l, err := specfile.LRP(path, text)
	if err != nil {
		return nil, fmt.Errorf("--lrp:\n%w", err)
	}
	if l.Rollout == nil {
		l.Rollout = &lrp.RolloutPolicy{MinHealthy: minHealthy}
	}
	return &l, nil
}

// desireSample says that the sample should run. If an earlier start has left a
// sample, that one stays as it is.
func (f *fleet) desireSample(ctx context.Context) error {
	if err := f.BBS.Desire(ctx, sample.LRP(sampleInstances)); err != nil && !errors.Is(err, storage.ErrExists) {
		return err
	}
	if err := f.BBS.DesireTask(ctx, sample.Task()); err != nil && !errors.Is(err, task.ErrExists) {
		return err
	}
	return f.BBS.UpsertDomain(ctx, sample.Domain, 0) // there is no more to it than this
}

// desireLRP says that l should run. If an earlier start desired another version,
// desireLRP rolls this one out.
func (f *fleet) desireLRP(ctx context.Context, l lrp.DesiredLRP) error {
	err := f.BBS.Desire(ctx, l)
	if !errors.Is(err, storage.ErrExists) {
		return err
	}
	have, err := f.BBS.Deployment(ctx, l.ProcessGUID)
	if err != nil {
		return err
	}
	if have.Domain != l.Domain || have.UpdateStrategy != l.UpdateStrategy {
		return fmt.Errorf("--lrp: %s is there with domain %q and update strategy %v, which cannot change; delete it or choose another process_guid",
			l.ProcessGUID, have.Domain, have.UpdateStrategy)
	}
	if fingerprint(have.Settings) != fingerprint(l.Settings) {
		if err := f.BBS.UpdateDeployment(ctx, l.ProcessGUID, lrp.UpdateSettings(l.Settings)); err != nil {
			return err
		}
	}
	id := fingerprint(l.Definition)
	if fingerprint(have.Definitions[have.ActiveDefinitionID]) == id {
		return nil
	}
	for known, definition := range have.Definitions {
		if fingerprint(definition) == id {
			return f.BBS.ActivateDefinition(ctx, l.ProcessGUID, known)
		}
	}
	return f.BBS.UpdateDeployment(ctx, l.ProcessGUID, lrp.Update{DefinitionID: &id, Definition: &l.Definition})
}

// fingerprint is a short name for what a value means.
func fingerprint(v any) string {
	meaning, _ := specfile.Meaning(v) // it came from JSON, or will go there
	text, _ := json.Marshal(meaning)
	return fmt.Sprintf("%x", sha256.Sum256(text))[:12]
}
