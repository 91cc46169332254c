package executor_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
)

var update = flag.Bool("update", false, "rewrite the golden files")

type validator interface{ Validate(*executor.Validator) }

// found is what validation finds in r, one line per field.
func found(r validator) []string {
	var v executor.Validator
	r.Validate(&v)
	return lines(v.Err())
}

func lines(err error) []string {
	if err == nil {
		return nil
	}
	var invalid *executor.ValidationError
	if !errors.As(err, &invalid) || !errors.Is(err, executor.ErrInvalid) {
		return []string{fmt.Sprintf("not a validation error: %v", err)}
	}
	var out []string
	for _, f := range invalid.Fields {
		out = append(out, f.String())
	}
	return out
}

func mustBeValid(t *testing.T, r validator) {
	t.Helper()
	if got := found(r); got != nil {
		t.Fatalf("found %q in a valid record", got)
	}
}

// golden checks that want encodes to the bytes of a file of testdata, and that
// the file decodes to want.
func golden[T any](t *testing.T, name string, want T) {
	t.Helper()
	path := filepath.Join("testdata", name)
	text, err := json.MarshalIndent(want, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, '\n')
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(file), string(text)); diff != "" {
		t.Errorf("%s has changed (-file +now); if that is wanted, run go test -update:\n%s", path, diff)
	}
	var got T
	if err := json.Unmarshal(file, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s decodes to something else (-want +got):\n%s", path, diff)
	}
}

func run(path string) executor.Action {
	return executor.Action{Run: &executor.RunAction{Path: path, User: "vcap"}}
}

// nested is a Run at the given depth.
func nested(depth int) executor.Action {
	a := run("/bin/app")
	for ; depth > 1; depth-- {
		a = executor.Action{Try: &executor.TryAction{Action: a}}
	}
	return a
}

func ptr[T any](x T) *T { return &x }

// fullAction has every kind of action and every field set.
func fullAction() executor.Action {
	return executor.Action{Serial: &executor.SerialAction{
		LogSource: "SERIAL",
		Actions: []executor.Action{
			{Download: &executor.DownloadAction{
				Artifact: "droplet", From: "https://blobs/droplet.tgz", To: "/home/vcap", CacheKey: "droplet-1", User: "vcap", LogSource: "CELL",
				Checksum: executor.Checksum{Algorithm: "sha1", Value: "da39a3ee5e6b4b0d3255bfef95601890afd80709"},
			}},
			{EmitProgress: &executor.EmitProgressAction{
				Action:       executor.Action{Try: &executor.TryAction{Action: run("/bin/warm-up"), LogSource: "WARM"}},
				StartMessage: "warming up", SuccessMessage: "warm", FailureMessagePrefix: "still cold", LogSource: "CELL",
			}},
			{Timeout: &executor.TimeoutAction{
				TimeoutMs: 1500,
				LogSource: "TIMEOUT",
				Action: executor.Action{Parallel: &executor.ParallelAction{
					LogSource: "PARALLEL",
					Actions: []executor.Action{
						{Run: &executor.RunAction{
							Path: "/bin/<app>", Args: []string{"-p", "8080"}, Dir: "/home/vcap", User: "vcap", LogSource: "APP", SuppressLogOutput: true,
							Env:            []executor.EnvVar{{Name: "PORT", Value: "8080"}, {Name: "EMPTY"}},
							ResourceLimits: executor.ResourceLimits{Nofile: ptr(uint64(4096)), Nproc: ptr(uint64(0))},
						}},
						{Codependent: &executor.CodependentAction{LogSource: "BOTH", Actions: []executor.Action{run("/bin/a"), run("/bin/b")}}},
					},
				}},
			}},
			{Upload: &executor.UploadAction{Artifact: "result", From: "/tmp/result", To: "https://blobs/result", User: "vcap", LogSource: "CELL"}},
		},
	}}
}

const sha256Zero = "0000000000000000000000000000000000000000000000000000000000000000"

// fullRunInfo has every field set.
func fullRunInfo() executor.RunInfo {
	return executor.RunInfo{
		RootFS:  "preloaded:linux",
		Env:     []executor.EnvVar{{Name: "LANG", Value: "C.UTF-8"}},
		Setup:   ptr(run("/bin/setup")),
		Action:  fullAction(),
		Monitor: ptr(run("/bin/monitor")),
		Check: &executor.CheckDefinition{
			Checks: []executor.Check{
				{TCP: &executor.TCPCheck{Port: 8080, ConnectTimeoutMs: 500, IntervalMs: 2000}},
				{HTTP: &executor.HTTPCheck{Port: 8080, Path: "/health", RequestTimeoutMs: 1000, IntervalMs: 30000}},
			},
			ReadinessChecks: []executor.Check{{HTTP: &executor.HTTPCheck{Port: 8081}}},
			LogSource:       "HEALTH",
		},
		StartTimeoutMs: 60000,
		Sidecars:       []executor.Sidecar{{Action: run("/bin/sidecar"), MemoryMB: 32, DiskMB: 64}},
		CPUWeight:      50,
		Privileged:     true,
		Ports:          []uint16{8080, 2222},
		EgressRules: []executor.EgressRule{
			{Protocol: "tcp", Destinations: []string{"10.0.0.0/8", "192.168.0.1-192.168.0.9,fd00::1"}, Ports: []uint16{80, 443}, Log: true, Annotations: []string{"dns"}},
			{Protocol: "udp", Destinations: []string{"0.0.0.0/0"}, PortRange: &executor.PortRange{Start: 53, End: 53}},
			{Protocol: "icmp", Destinations: []string{"10.0.0.1"}, ICMP: &executor.ICMPInfo{Type: 8, Code: -1}},
			{Protocol: "icmpv6", Destinations: []string{"::/0"}, ICMP: &executor.ICMPInfo{Type: -1, Code: 255}},
			{Protocol: "all", Destinations: []string{"10.1.0.0/16"}},
		},
		CachedDependencies: []executor.CachedDependency{{
			Name: "lifecycle", From: "https://blobs/lifecycle.tgz", To: "/tmp/lifecycle", CacheKey: "lifecycle", LogSource: "CELL",
			Checksum: executor.Checksum{Algorithm: "sha256", Value: sha256Zero},
		}},
		LegacyDownloadUser:            "vcap",
		TrustedSystemCertificatesPath: "/etc/certs",
		VolumeMounts: []executor.VolumeMount{
			{Driver: "nfs", ContainerDir: "/data", Mode: "rw", Shared: &executor.SharedDevice{VolumeID: "v1", MountConfig: "{}"}},
			{Driver: "local", ContainerDir: "/own", Mode: "r", Dedicated: &executor.DedicatedDevice{MounterID: "m1", MountConfig: "{}"}},
		},
		VolumeMountedFiles: []executor.File{{Path: "creds/db", Content: "secret"}},
		ImageLayers: []executor.ImageLayer{
			{Name: "tools", URL: "https://blobs/tools.tgz", DestinationPath: "/opt", MediaType: "TGZ", LayerType: "SHARED"},
			{Name: "app", URL: "https://blobs/app.zip", DestinationPath: "/app", MediaType: "ZIP", LayerType: "EXCLUSIVE", DigestAlgorithm: "SHA256", DigestValue: sha256Zero},
			{Name: "more", URL: "https://blobs/more.tar", DestinationPath: "/more", MediaType: "TAR", LayerType: "SHARED", DigestAlgorithm: "SHA512", DigestValue: sha256Zero + sha256Zero},
		},
		Network:               &executor.Network{Properties: map[string]string{"policy": "p1", "app": "a1"}},
		CertificateProperties: &executor.CertificateConfig{OrganizationalUnit: []string{"app:a1", "space:s1"}},
		LogRateLimit:          &executor.LogRateLimit{BytesPerSecond: 1024},
		LogSource:             "APP",
		LogGUID:               "log-1",
		MetricsGUID:           "metrics-1",
	}
}

var epoch = time.Date(2030, 1, 2, 3, 4, 5, 600, time.UTC)

// at is a number of seconds after epoch.
func at(seconds int) time.Time { return epoch.Add(time.Duration(seconds) * time.Second) }
