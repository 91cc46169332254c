package storage

import "github.com/diegosdk/diego/lrp"

// rules are the parts of a deployment that lrp.Step uses and that most
// deployments do not have.
type rules struct {
	Restart *lrp.RestartPolicy `json:"restart_policy,omitempty"`
	Rollout *lrp.RolloutPolicy `json:"rollout_policy,omitempty"`
}

// EncodeRules is the versioned encoding of the policies that a deployment has
// of its own. It is empty if there are none. A store keeps it apart from the
// other settings, because a [Bare] deployment has it too.
func EncodeRules(d *lrp.Deployment) ([]byte, error) {
	r := rules{d.Restart, d.Rollout}
	if r == (rules{}) {
		return nil, nil
	}
	return Encode(r)
}

// DecodeRules reads an encoding of [EncodeRules] into d.
func DecodeRules(data []byte, d *lrp.Deployment) error {
	if len(data) == 0 {
		d.Restart, d.Rollout = nil, nil
		return nil
	}
	var r rules
	if err := Decode(data, &r); err != nil {
		return err
	}
	d.Restart, d.Rollout = r.Restart, r.Rollout
	return nil
}
