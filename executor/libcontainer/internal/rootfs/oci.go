//go:build linux

package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/diegosdk/diego/executor"
)

// A descriptor points to a blob of an image layout.
type descriptor struct {
	MediaType   string            `json:"mediaType"`
	Digest      string            `json:"digest"`
	Annotations map[string]string `json:"annotations"`
	Platform    *struct {
		Architecture string `json:"architecture"`
		OS           string `json:"os"`
	} `json:"platform"`
}

// A manifest is one image of a layout.
type manifest struct {
	// Digest identifies the image, under all its names.
	Digest string       `json:"-"`
	Layers []descriptor `json:"layers"`
}

// RefName is the annotation that names an image in a layout.
const RefName = "org.opencontainers.image.ref.name"

const (
	// maxJSONBytes bounds an index or a manifest; maxIndexDepth how deep an
	// index may lie in another.
	maxJSONBytes  = 4 << 20
	maxIndexDepth = 4
)

// readLayout finds an image in a layout: the one named ref, or the only one
// that this machine can run if ref is empty.
func readLayout(dir, ref string) (manifest, error) {
	text, err := readAtMost(filepath.Join(dir, "index.json"), maxJSONBytes)
	if err != nil {
		return manifest{}, err
	}
	return chooseManifest(dir, text, ref, 0)
}

func chooseManifest(dir string, index []byte, ref string, depth int) (manifest, error) {
	var list struct {
		Manifests []descriptor `json:"manifests"`
	}
	if err := json.Unmarshal(index, &list); err != nil {
		return manifest{}, fmt.Errorf("an OCI index: %w", err)
	}
	var chosen []descriptor
	for _, d := range list.Manifests {
		named := ref == "" || d.Annotations[RefName] == ref
		fits := d.Platform == nil || d.Platform.OS == "linux" && d.Platform.Architecture == runtime.GOARCH
		if named && fits {
			chosen = append(chosen, d)
		}
	}
	if len(chosen) != 1 {
		return manifest{}, fmt.Errorf("%w: %d images fit the reference %q and linux/%s, want one", fs.ErrNotExist, len(chosen), ref, runtime.GOARCH)
	}
	path, err := blobPath(dir, chosen[0].Digest)
	if err != nil {
		return manifest{}, err
	}
	text, err := readAtMost(path, maxJSONBytes)
	if err != nil {
		return manifest{}, err
	}
	if sum := sha256.Sum256(text); "sha256:"+hex.EncodeToString(sum[:]) != chosen[0].Digest {
		return manifest{}, fmt.Errorf("the blob %s has another digest", chosen[0].Digest)
	}
	if strings.HasSuffix(chosen[0].MediaType, "index.v1+json") || strings.HasSuffix(chosen[0].MediaType, "manifest.list.v2+json") {
		if depth == maxIndexDepth {
			return manifest{}, fmt.Errorf("more than %d OCI indexes within each other", maxIndexDepth)
		}
		return chooseManifest(dir, text, "", depth+1)
	}
	m := manifest{Digest: chosen[0].Digest}
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("an OCI manifest: %w", err)
	}
	if len(m.Layers) == 0 {
		return m, fmt.Errorf("the OCI manifest %s has no layers", m.Digest)
	}
	return m, nil
}

// blobPath is where a layout keeps a blob. A digest is from outside and must
// not lead anywhere else.
func blobPath(dir, digest string) (string, error) {
	sum, ok := strings.CutPrefix(digest, "sha256:")
	if raw, err := hex.DecodeString(sum); !ok || err != nil || len(raw) != sha256.Size || sum != strings.ToLower(sum) {
		return "", fmt.Errorf("%w: the digest %q; there is sha256", executor.ErrUnsupported, digest)
	}
	return filepath.Join(dir, "blobs", "sha256", sum), nil
}

func readAtMost(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return text, err
}

// unpackLayers unpacks an image and checks every layer against its digest.
func unpackLayers(ctx context.Context, layout string, m manifest, dir string) error {
	l, err := newLayering(dir)
	if err != nil {
		return err
	}
	defer l.root.Close()
	for _, d := range m.Layers {
		if err := l.blob(ctx, layout, d.Digest); err != nil {
			return fmt.Errorf("layer %s: %w", d.Digest, err)
		}
	}
	return nil
}

func (l *layering) blob(ctx context.Context, layout, digest string) error {
	path, err := blobPath(layout, digest)
	if err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := sha256.New()
	if err := l.apply(ctx, io.TeeReader(f, sum)); err != nil {
		return err
	}
	if got := "sha256:" + hex.EncodeToString(sum.Sum(nil)); got != digest {
		return fmt.Errorf("its content has the digest %s", got)
	}
	return nil
}
