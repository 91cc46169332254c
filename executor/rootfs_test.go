package executor_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/diegosdk/diego/executor"
)

func TestALayeredRootFileSystemIsTakenApart(t *testing.T) {
	digest := strings.Repeat("a1", 32)
	for _, test := range []struct {
		rootFS, base string
		layer        *executor.RootFSLayer
		fault        string
	}{
		{rootFS: "preloaded:linux", base: "preloaded:linux"},
		{rootFS: "oci:///images/app#v1", base: "oci:///images/app#v1"},
		{rootFS: "preloaded+layer", base: "preloaded+layer"},
		{rootFS: "preloaded+layer:linux?layer=https%3A%2F%2Fblobs%2Fa.tgz%3Fx%3D1%26y&layer_path=%2Fhome%2Fvcap&layer_digest=" + digest, base: "preloaded:linux",
			layer: &executor.RootFSLayer{URL: "https://blobs/a.tgz?x=1&y", Path: "/home/vcap", SHA256: digest}},
		{rootFS: "Preloaded+Layer:linux?layer=http://blobs/a.tar&layer_digest=" + digest, base: "preloaded:linux",
			layer: &executor.RootFSLayer{URL: "http://blobs/a.tar", Path: "/", SHA256: digest}},
		{rootFS: "preloaded+layer:linux", fault: "root_fs.layer"},
		{rootFS: "preloaded+layer:linux?layer=http://x&layer_digest=" + digest[2:], fault: "root_fs.layer_digest"},
		{rootFS: "preloaded+layer:linux?layer=http://x&layer_digest=" + strings.ToUpper(digest), fault: "root_fs.layer_digest"},
		{rootFS: "preloaded+layer:linux?layer=http://x&layer_path=home&layer_digest=" + digest, fault: "root_fs.layer_path"},
		{rootFS: "preloaded+layer:linux?layer=http://x&layer=http://y&layer_digest=" + digest, fault: "layer, 2 times"},
		{rootFS: "preloaded+layer:linux?layer=http://x&user=root&layer_digest=" + digest, fault: "user, 1 times"},
		{rootFS: "preloaded+layer:linux?layer=%zz&layer_digest=" + digest, fault: "a query that can be parsed"},
		{rootFS: "preloaded+layer:?layer=http://x&layer_digest=" + digest, fault: "the name of a preloaded root file system"},
	} {
		base, layer, err := executor.SplitRootFS(test.rootFS)
		if test.fault != "" {
			if !errors.Is(err, executor.ErrInvalid) || !strings.Contains(err.Error(), test.fault) {
				t.Errorf("%s: the error is %v, want %q", test.rootFS, err, test.fault)
			}
			continue
		}
		if err != nil || base != test.base || (layer == nil) != (test.layer == nil) || layer != nil && *layer != *test.layer {
			t.Errorf("%s: %q, %+v, %v, want %q, %+v", test.rootFS, base, layer, err, test.base, test.layer)
		}
	}
}
