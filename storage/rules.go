package storage

import "github.com/diegosdk/diego/lrp"

// EncodeRules is the versioned encoding of the policies that a deployment has
// of its own. It is empty if there are none. A store keeps it apart from the
// other settings, because a [Bare] deployment has it too.
func EncodeRules(d *lrp.Deployment) ([]byte, error) {
	if d.Policies == (lrp.Policies{}) {
		return nil, nil
	}
	return Encode(d.Policies)
}

// DecodeRules reads an encoding of [EncodeRules] into d.
func DecodeRules(data []byte, d *lrp.Deployment) error {
	d.Policies = lrp.Policies{}
	if len(data) == 0 {
		return nil
	}
	return Decode(data, &d.Policies)
}
