package executor

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
)

// A RootFSLayer is an archive on top of a preloaded root file system.
type RootFSLayer struct {
	// URL is where it is downloaded: a tar, gzipped or not.
	URL string
	// Path is the directory of the root file system to which the archive belongs.
	Path string
	// SHA256 is the digest of the archive, in lower-case hexadecimal.
	SHA256 string
}

const (
	preloadedScheme = "preloaded:"
	layeredScheme   = "preloaded+layer:"
)

// SplitRootFS splits a root file system such as
//
//	preloaded+layer:linux?layer=https%3A%2F%2Fblobs%2Fapp.tgz&layer_path=%2Fhome%2Fvcap&layer_digest=SHA256
//
// into "preloaded:linux" and its layer. The layer is nil for a root file system
// without one. Without layer_path the layer belongs to "/". The error is a
// *ValidationError.
func SplitRootFS(rootFS string) (base string, layer *RootFSLayer, err error) {
	if len(rootFS) < len(layeredScheme) || !strings.EqualFold(rootFS[:len(layeredScheme)], layeredScheme) {
		return rootFS, nil, nil
	}
	name, text, _ := strings.Cut(rootFS[len(layeredScheme):], "?")
	var v Validator
	query, err := url.ParseQuery(text)
	if err != nil {
		v.Check(false, "root_fs", rootFS, "a query that can be parsed: escape what layer and layer_path hold")
		return "", nil, v.Err()
	}
	in := v.In("root_fs")
	layer = &RootFSLayer{URL: query.Get("layer"), Path: "/", SHA256: query.Get("layer_digest")}
	if query.Has("layer_path") {
		layer.Path = query.Get("layer_path")
	}
	for _, key := range slices.Sorted(maps.Keys(query)) {
		known, n := key == "layer" || key == "layer_path" || key == "layer_digest", len(query[key])
		in.Check(known && n == 1, "", fmt.Sprintf("%s, %d times", key, n), "layer, layer_path and layer_digest, each once")
	}
	in.required("layer", layer.URL)
	in.hex("layer_digest", layer.SHA256, 64)
	in.Check(strings.HasPrefix(layer.Path, "/"), "layer_path", layer.Path, "an absolute path")
	in.Check(name != "", "", rootFS, "the name of a preloaded root file system")
	return preloadedScheme + name, layer, v.Err()
}
