package executor

// The values of ImageLayer's fields.
const (
	MediaTypeTGZ = "TGZ"
	MediaTypeTAR = "TAR"
	MediaTypeZIP = "ZIP"

	// LayerShared is cached per cell and read-only.
	LayerShared = "SHARED"
	// LayerExclusive is downloaded for the container alone.
	LayerExclusive = "EXCLUSIVE"

	DigestSHA256 = "SHA256"
	DigestSHA512 = "SHA512"
)

// An ImageLayer is an archive that is put on top of the root file system.
type ImageLayer struct {
	Name            string `json:"name,omitempty"`
	URL             string `json:"url"`
	DestinationPath string `json:"destination_path"`
	// MediaType is TGZ, TAR or ZIP.
	MediaType string `json:"media_type"`
	// LayerType is SHARED or EXCLUSIVE. EXCLUSIVE requires a digest and
	// RunInfo.LegacyDownloadUser.
	LayerType string `json:"layer_type"`
	// DigestAlgorithm is SHA256 or SHA512, and DigestValue lower-case
	// hexadecimal. They come together.
	DigestAlgorithm string `json:"digest_algorithm,omitempty"`
	DigestValue     string `json:"digest_value,omitempty"`
}

// Validate checks everything but the download user, which is RunInfo's.
func (l ImageLayer) Validate(v *Validator) {
	v.required("url", l.URL)
	v.required("destination_path", l.DestinationPath)
	switch l.MediaType {
	case MediaTypeTGZ, MediaTypeTAR, MediaTypeZIP:
	default:
		v.Check(false, "media_type", l.MediaType, "TGZ, TAR or ZIP")
	}
	if l.LayerType != LayerShared && l.LayerType != LayerExclusive {
		v.Check(false, "layer_type", l.LayerType, "SHARED or EXCLUSIVE")
	}
	switch l.DigestAlgorithm {
	case DigestSHA256:
		v.hex("digest_value", l.DigestValue, 64)
	case DigestSHA512:
		v.hex("digest_value", l.DigestValue, 128)
	case "":
		v.Check(l.LayerType != LayerExclusive, "digest_algorithm", "", "SHA256 or SHA512 for an EXCLUSIVE layer")
		v.Check(l.DigestValue == "", "digest_value", l.DigestValue, "a digest algorithm with it")
	default:
		v.Check(false, "digest_algorithm", l.DigestAlgorithm, "SHA256 or SHA512")
	}
}
