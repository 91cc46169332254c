package storage

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/diegosdk/diego/lrp"
)

// Rules are parts of a deployment that lrp.Step uses and most deployments do
// not have: the policies of the process and the state of its rollout. A store
// keeps them apart from the other settings.
type Rules struct {
	lrp.Policies
	State lrp.RolloutState `json:"rollout_state,omitzero"`
}

// RulesOf returns the rules of d.
func RulesOf(d *lrp.Deployment) Rules { return Rules{d.Policies, d.RolloutState} }

// Set makes the rules of d those of r.
func (r Rules) Set(d *lrp.Deployment) { d.Policies, d.RolloutState = r.Policies, r.State }

// EncodeRevisions returns the versioned encoding of the history of d, empty if
// there is none. A store keeps it with the deployment, apart from what lists
// read.
func EncodeRevisions(d *lrp.Deployment) ([]byte, error) {
	if len(d.Revisions) == 0 {
		return nil, nil
	}
	return Encode(d.Revisions)
}

// DecodeRevisions reads an encoding of [EncodeRevisions] into d. A revision that
// cannot be decoded is left out, because a deployment is of use without its
// history, too. The error says which revisions are left out; d gets the others.
func DecodeRevisions(data []byte, d *lrp.Deployment) error {
	d.Revisions = nil
	if len(data) == 0 {
		return nil
	}
	var list []json.RawMessage
	if err := Decode(data, &list); err != nil {
		return err
	}
	var errs []error
	for i, text := range list {
		var r lrp.Revision
		if err := json.Unmarshal(text, &r); err != nil {
			errs = append(errs, fmt.Errorf("number %d of %d: %w", i+1, len(list), err))
			continue
		}
		d.Revisions = append(d.Revisions, r)
	}
	return errors.Join(errs...)
}

// encodedRules also say about which active definition the state is: a process of
// the release before changes deployments without knowing of these rules.
type encodedRules struct {
	Rules
	About string `json:"active_definition_id,omitempty"`
}

// EncodeRules returns the versioned encoding of the rules of d, empty if there
// are none.
func EncodeRules(d *lrp.Deployment) ([]byte, error) {
	r := encodedRules{Rules: RulesOf(d)}
	if r == (encodedRules{}) {
		return nil, nil
	}
	if !r.State.IsZero() {
		r.About = d.ActiveDefinitionID
	}
	return Encode(r)
}

// DecodeRules reads an encoding of [EncodeRules] into d, which has its
// definitions already, or at least their ids. The state of a rollout is left out
// if d has moved on without it: another definition is active, or the one from
// which the rollout began is gone.
func DecodeRules(data []byte, d *lrp.Deployment) error {
	var r encodedRules
	if len(data) > 0 {
		if err := Decode(data, &r); err != nil {
			return err
		}
	}
	_, kept := d.Definitions[r.State.From]
	if r.About != d.ActiveDefinitionID || r.State.From != "" && !kept {
		r.State = lrp.RolloutState{}
	}
	r.Set(d)
	return nil
}
