package executor

// A Checksum is the expected digest of a download, in lower-case hexadecimal.
// The zero value means that nothing is checked.
type Checksum struct {
	// Algorithm is md5, sha1 or sha256.
	Algorithm string `json:"algorithm,omitempty"`
	Value     string `json:"value,omitempty"`
}

// Validate checks that algorithm and value come together, or not at all, and
// that the value is a digest of that algorithm.
func (c Checksum) Validate(v *Validator) {
	if c == (Checksum{}) {
		return
	}
	switch c.Algorithm {
	case "md5":
		v.hex("value", c.Value, 32)
	case "sha1":
		v.hex("value", c.Value, 40)
	case "sha256":
		v.hex("value", c.Value, 64)
	default:
		v.Check(false, "algorithm", c.Algorithm, "md5, sha1 or sha256")
		v.required("value", c.Value)
	}
}
