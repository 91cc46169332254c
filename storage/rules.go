package storage

import "github.com/diegosdk/diego/lrp"

// Rules are the parts of a deployment, besides those of a [Bare] one without
// them, that lrp.Step uses and that most deployments do not have. A store keeps
// them apart from the other settings.
type Rules struct {
	lrp.Policies
	State lrp.RolloutState `json:"rollout_state,omitzero"`
}

// RulesOf are the rules of d.
func RulesOf(d *lrp.Deployment) Rules { return Rules{d.Policies, d.RolloutState} }

// Set makes the rules of d those of r.
func (r Rules) Set(d *lrp.Deployment) { d.Policies, d.RolloutState = r.Policies, r.State }

// EncodeRules is the versioned encoding of the rules of d. It is empty if there
// are none.
func EncodeRules(d *lrp.Deployment) ([]byte, error) {
	r := RulesOf(d)
	if r == (Rules{}) {
		return nil, nil
	}
	return Encode(r)
}

// DecodeRules reads an encoding of [EncodeRules] into d.
func DecodeRules(data []byte, d *lrp.Deployment) error {
	var r Rules
	if len(data) > 0 {
		if err := Decode(data, &r); err != nil {
			return err
		}
	}
	r.Set(d)
	return nil
}
