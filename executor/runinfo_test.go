package executor_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/executor"
)

func TestARunInfoWithEveryFieldIsAccepted(t *testing.T) { mustBeValid(t, fullRunInfo()) }

func TestARunInfoNeedsOnlyARootFSAndAnAction(t *testing.T) {
	mustBeValid(t, executor.RunInfo{RootFS: "host:", Action: run("/bin/app")})
}

func TestEveryRunInfoSurvivesItsJSON(t *testing.T) {
	golden(t, "runinfo.json", fullRunInfo())
	golden(t, "runinfo-least.json", executor.RunInfo{RootFS: "host:", Action: run("/bin/app")})
}

func TestAnInvalidRunInfoIsRefusedWithItsPath(t *testing.T) {
	type R = executor.RunInfo
	const blank = "want a text that is not empty"
	const none = "want " + oneKind
	list := func(field string) []string { return []string{field + ": 10001: want at most 10000 elements"} }
	const long = executor.MaxListLength + 1
	tests := []struct {
		name string
		edit func(*R)
		want []string
	}{
		{"no root file system", func(r *R) { r.RootFS = "" }, []string{"root_fs: want a URL with a scheme"}},
		{"a root file system without scheme", func(r *R) { r.RootFS = "/linux" }, []string{"root_fs: /linux: want a URL with a scheme"}},
		{"a root file system that is not a URL", func(r *R) { r.RootFS = "docker://a b" }, []string{"root_fs: docker://a b: want a URL with a scheme"}},
		{"a long root file system", func(r *R) { r.RootFS = "oci:" + strings.Repeat("x", 1021) }, []string{"root_fs: 1025 bytes: want at most 1024 bytes"}},
		{"a variable without name", func(r *R) { r.Env[0].Name = "" }, []string{"env[0].name: want a name that is not blank, without = and NUL"}},
		{"a variable with = in its name", func(r *R) { r.Env[0].Name = "A=B" }, []string{"env[0].name: A=B: want a name that is not blank, without = and NUL"}},
		{"a variable with NUL in its value", func(r *R) { r.Env[0].Value = "a\x00" }, []string{"env[0].value: want a text without NUL"}},
		{"a variable that no process can receive", func(r *R) { r.Env[0] = executor.EnvVar{Name: "A", Value: strings.Repeat("x", 131070)} },
			[]string{"env[0]: 131072 bytes: want at most 131071 bytes with its name"}},
		{"a monitor of too many actions", func(r *R) {
			r.Monitor = &executor.Action{Parallel: &executor.ParallelAction{Actions: slices.Repeat([]executor.Action{r.Action}, 50)}}
		}, []string{"monitor: want at most 50 actions"}},
		{"too many variables", func(r *R) { r.Env = make([]executor.EnvVar, long) }, list("env")},
		{"an invalid setup", func(r *R) { r.Setup = &executor.Action{} }, []string{"setup: []: " + none}},
		{"no action", func(r *R) { r.Action = executor.Action{} }, []string{"action: []: " + none}},
		{"an invalid monitor", func(r *R) { r.Monitor = &executor.Action{} }, []string{"monitor: []: " + none}},
		{"a negative start timeout", func(r *R) { r.StartTimeoutMs = -1 }, []string{"start_timeout_ms: -1: want 0 to 9223372036854 milliseconds"}},
		{"a CPU weight above the whole", func(r *R) { r.CPUWeight = 101 }, []string{"cpu_weight: 101: want at most 100"}},
		{"port 0", func(r *R) { r.Ports[1] = 0 }, []string{"ports[1]: 0: want 1 to 65535"}},
		{"several mistakes, in the order of the fields", func(r *R) { r.CPUWeight, r.RootFS, r.StartTimeoutMs = 200, "", -5 },
			[]string{"root_fs: want a URL with a scheme", "start_timeout_ms: -5: want 0 to 9223372036854 milliseconds", "cpu_weight: 200: want at most 100"}},

		{"a check of no kind", func(r *R) { r.Check.Checks[0].TCP = nil }, []string{"check.checks[0]: want exactly one of tcp and http"}},
		{"a check of two kinds", func(r *R) { r.Check.Checks[0].HTTP = r.Check.Checks[1].HTTP }, []string{"check.checks[0]: want exactly one of tcp and http"}},
		{"a check of port 0", func(r *R) { r.Check.Checks[0].TCP.Port = 0 }, []string{"check.checks[0].tcp.port: 0: want 1 to 65535"}},
		{"a check of a long path", func(r *R) { r.Check.Checks[1].HTTP.Path = "/" + strings.Repeat("a", 2048) }, []string{"check.checks[1].http.path: 2049 bytes: want at most 2048 bytes"}},
		{"a check of a relative path", func(r *R) { r.Check.Checks[1].HTTP.Path = "health" }, []string{"check.checks[1].http.path: health: want a path that starts with /"}},
		{"an HTTP check with negative times", func(r *R) { h := r.Check.ReadinessChecks[0].HTTP; h.Port, h.RequestTimeoutMs, h.IntervalMs = 0, -1, -2 },
			[]string{"check.readiness_checks[0].http.port: 0: want 1 to 65535",
				"check.readiness_checks[0].http.request_timeout_ms: -1: want 0 to 9223372036854 milliseconds",
				"check.readiness_checks[0].http.interval_ms: -2: want 0 to 9223372036854 milliseconds"}},
		{"a TCP check with negative times", func(r *R) { c := r.Check.Checks[0].TCP; c.ConnectTimeoutMs, c.IntervalMs = -1, -2 },
			[]string{"check.checks[0].tcp.connect_timeout_ms: -1: want 0 to 9223372036854 milliseconds",
				"check.checks[0].tcp.interval_ms: -2: want 0 to 9223372036854 milliseconds"}},
		{"too many checks", func(r *R) { r.Check.Checks = make([]executor.Check, 51) }, []string{"check.checks: 51: want at most 50 elements"}},

		{"a sidecar without action", func(r *R) { r.Sidecars[0] = executor.Sidecar{} }, []string{"sidecars[0].action: []: " + none}},
		{"a sidecar of negative size", func(r *R) { r.Sidecars[0].MemoryMB, r.Sidecars[0].DiskMB = -1, -2 },
			[]string{"sidecars[0].memory_mb: -1: want at least 0", "sidecars[0].disk_mb: -2: want at least 0"}},
		{"too many actions in sidecars", func(r *R) {
			tree := executor.Action{Parallel: &executor.ParallelAction{Actions: slices.Repeat([]executor.Action{run("/bin/app")}, 24)}}
			r.Sidecars = slices.Repeat([]executor.Sidecar{{Action: tree}}, 41)
		}, []string{"sidecars: want at most 1000 actions in all of them together"}},
		{"too many sidecars", func(r *R) { r.Sidecars = make([]executor.Sidecar, 51) }, []string{"sidecars: 51: want at most 50 elements"}},

		{"an invalid egress rule", func(r *R) { r.EgressRules[1].PortRange = nil }, []string{"egress_rules[1].ports: want exactly one of ports and port_range for udp"}},
		{"too many addresses and ports", func(r *R) {
			r.EgressRules = []executor.EgressRule{
				{Protocol: "tcp", Destinations: []string{"10.0.0.1,10.0.0.2", "10.1.0.0/16"}, Ports: make([]uint16, 600)},
				{Protocol: "udp", Destinations: slices.Repeat([]string{"10.0.0.1"}, 201), PortRange: &executor.PortRange{Start: 1, End: 65535}},
			}
			for i := range r.EgressRules[0].Ports {
				r.EgressRules[0].Ports[i] = uint16(i + 1)
			}
		}, []string{"egress_rules: 2001: want at most 2000 ranges of addresses, counted once for each port of a rule (a port_range counts once)"}},
		{"too many ports", func(r *R) { r.Ports = make([]uint16, 101) }, []string{"ports: 101: want at most 100 elements"}},
		{"too many egress rules", func(r *R) { r.EgressRules = make([]executor.EgressRule, long) }, list("egress_rules")},

		{"a dependency from nowhere", func(r *R) { r.CachedDependencies[0].From, r.CachedDependencies[0].To = "", "" },
			[]string{"cached_dependencies[0].from: " + blank, "cached_dependencies[0].to: " + blank}},
		{"an unknown checksum", func(r *R) { r.CachedDependencies[0].Checksum.Algorithm = "crc32" },
			[]string{"cached_dependencies[0].checksum.algorithm: crc32: want md5, sha1 or sha256"}},
		{"a checksum without algorithm", func(r *R) { r.CachedDependencies[0].Checksum.Algorithm = "" },
			[]string{"cached_dependencies[0].checksum.algorithm: want md5, sha1 or sha256"}},
		{"an algorithm without checksum", func(r *R) { r.CachedDependencies[0].Checksum.Value = "" },
			[]string{"cached_dependencies[0].checksum.value: want 64 lower-case hexadecimal digits"}},
		{"an unknown algorithm without checksum", func(r *R) { r.CachedDependencies[0].Checksum = executor.Checksum{Algorithm: "crc32"} },
			[]string{"cached_dependencies[0].checksum.algorithm: crc32: want md5, sha1 or sha256", "cached_dependencies[0].checksum.value: " + blank}},
		{"a checksum in upper case", func(r *R) {
			r.CachedDependencies[0].Checksum = executor.Checksum{Algorithm: "md5", Value: "D41D8CD98F00B204E9800998ECF8427E"}
		}, []string{"cached_dependencies[0].checksum.value: D41D8CD98F00B204E9800998ECF8427E: want 32 lower-case hexadecimal digits"}},
		{"too many dependencies", func(r *R) { r.CachedDependencies = make([]executor.CachedDependency, 101) }, []string{"cached_dependencies: 101: want at most 100 elements"}},

		{"a volume without driver", func(r *R) { r.VolumeMounts[0].Driver = "" }, []string{"volume_mounts[0].driver: " + blank}},
		{"a volume of another mode", func(r *R) { r.VolumeMounts[0].Mode = "RW" }, []string{"volume_mounts[0].mode: RW: want r or rw"}},
		{"a volume of no device", func(r *R) { r.VolumeMounts[0].Shared = nil }, []string{"volume_mounts[0]: want exactly one of shared and dedicated"}},
		{"a volume of two devices", func(r *R) { r.VolumeMounts[0].Dedicated = r.VolumeMounts[1].Dedicated },
			[]string{"volume_mounts[0]: want exactly one of shared and dedicated"}},
		{"a shared device without id", func(r *R) { r.VolumeMounts[0].Shared.VolumeID = "" }, []string{"volume_mounts[0].shared.volume_id: " + blank}},
		{"a dedicated device without mounter", func(r *R) { r.VolumeMounts[1].Dedicated.MounterID = "" }, []string{"volume_mounts[1].dedicated.mounter_id: " + blank}},
		{"too many volumes", func(r *R) { r.VolumeMounts = make([]executor.VolumeMount, 101) }, []string{"volume_mounts: 101: want at most 100 elements"}},

		{"a file without path", func(r *R) { r.VolumeMountedFiles[0].Path = "" }, []string{"volume_mounted_files[0].path: want a path without .. and NUL"}},
		{"a file above its directory", func(r *R) { r.VolumeMountedFiles[0].Path = "a/../../b" },
			[]string{"volume_mounted_files[0].path: a/../../b: want a path without .. and NUL"}},
		{"an empty file", func(r *R) { r.VolumeMountedFiles[0].Content = "" }, []string{"volume_mounted_files[0].content: " + blank}},
		{"files of more than a mebibyte", func(r *R) {
			r.VolumeMountedFiles = []executor.File{{Path: "a", Content: strings.Repeat("x", 1<<19)}, {Path: "b", Content: strings.Repeat("x", 1<<19+1)}}
		}, []string{"volume_mounted_files: 1048577 bytes: want at most 1048576 bytes of content in all"}},
		{"too many files", func(r *R) { r.VolumeMountedFiles = make([]executor.File, 1001) }, []string{"volume_mounted_files: 1001: want at most 1000 elements"}},

		{"an empty layer", func(r *R) { r.ImageLayers[0] = executor.ImageLayer{} },
			[]string{"image_layers[0].url: " + blank, "image_layers[0].destination_path: " + blank, "image_layers[0].media_type: want TGZ, TAR or ZIP",
				"image_layers[0].layer_type: want SHARED or EXCLUSIVE"}},
		{"an exclusive layer without digest", func(r *R) { r.ImageLayers[1].DigestAlgorithm, r.ImageLayers[1].DigestValue = "", "" },
			[]string{"image_layers[1].digest_algorithm: want SHA256 or SHA512 for an EXCLUSIVE layer"}},
		{"an exclusive layer without user", func(r *R) { r.LegacyDownloadUser = "" }, []string{"legacy_download_user: want a user for EXCLUSIVE image layers"}},
		{"a digest without algorithm", func(r *R) { r.ImageLayers[0].DigestValue = "ab" }, []string{"image_layers[0].digest_value: ab: want a digest algorithm with it"}},
		{"a digest of another algorithm", func(r *R) { r.ImageLayers[1].DigestAlgorithm = "MD5" },
			[]string{"image_layers[1].digest_algorithm: MD5: want SHA256 or SHA512"}},
		{"a digest of another length", func(r *R) { r.ImageLayers[2].DigestValue = sha256Zero },
			[]string{"image_layers[2].digest_value: " + sha256Zero + ": want 128 lower-case hexadecimal digits"}},
		{"too many layers", func(r *R) { r.ImageLayers = make([]executor.ImageLayer, 101) }, []string{"image_layers: 101: want at most 100 elements"}},

		{"too many network properties", func(r *R) {
			for i := range long {
				r.Network.Properties[fmt.Sprint(i)] = ""
			}
			delete(r.Network.Properties, "app")
			delete(r.Network.Properties, "policy")
		}, list("network.properties")},
		{"too many units", func(r *R) { r.CertificateProperties.OrganizationalUnit = make([]string, long) }, list("certificate_properties.organizational_unit")},
		{"the unit of a role", func(r *R) { r.CertificateProperties.OrganizationalUnit = []string{"app:a", "diego-cell"} },
			[]string{"certificate_properties.organizational_unit[1]: diego-cell: want UTF-8 that does not begin with diego-, as the roles of the fleet do"}},
		{"a unit like that of a role", func(r *R) { r.CertificateProperties.OrganizationalUnit = []string{"DIEGO-"} },
			[]string{"certificate_properties.organizational_unit[0]: DIEGO-: want UTF-8 that does not begin with diego-, as the roles of the fleet do"}},
		{"a log rate below none", func(r *R) { r.LogRateLimit.BytesPerSecond = -2 },
			[]string{"log_rate_limit.bytes_per_second: -2: want at least -1, which means no limit"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			info := fullRunInfo()
			test.edit(&info)
			if diff := cmp.Diff(test.want, found(info)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTheLimitsOfARunInfoAreInclusive(t *testing.T) {
	for name, edit := range map[string]func(*executor.RunInfo){
		"root file system": func(r *executor.RunInfo) { r.RootFS = "oci:" + strings.Repeat("x", executor.MaxRootFSBytes-4) },
		"variable": func(r *executor.RunInfo) {
			r.Env[0] = executor.EnvVar{Name: "A", Value: strings.Repeat("x", executor.MaxEnvVarBytes-2)}
		},
		"files": func(r *executor.RunInfo) {
			r.VolumeMountedFiles[0].Content = strings.Repeat("x", executor.MaxFilesBytes)
		},
		"file names":    func(r *executor.RunInfo) { r.VolumeMountedFiles[0].Path = "..a/b.." },
		"start timeout": func(r *executor.RunInfo) { r.StartTimeoutMs = executor.MaxMilliseconds },
		"CPU weight":    func(r *executor.RunInfo) { r.CPUWeight = executor.MaxCPUWeight },
		"log rate":      func(r *executor.RunInfo) { r.LogRateLimit.BytesPerSecond = -1 },
		"ports":         func(r *executor.RunInfo) { r.Ports = []uint16{1, 65535} },
		"sidecar":       func(r *executor.RunInfo) { r.Sidecars[0].MemoryMB = executor.MaxMB },
	} {
		t.Run(name, func(t *testing.T) {
			info := fullRunInfo()
			edit(&info)
			mustBeValid(t, info)
		})
	}
}

func TestErrorsShowNoSecrets(t *testing.T) {
	info := fullRunInfo()
	info.Env = []executor.EnvVar{{Name: "", Value: "hunter2"}, {Name: "A", Value: "hunter2\x00"}, {Name: "B", Value: strings.Repeat("hunter2", 1<<16)}}
	info.VolumeMountedFiles = []executor.File{{Content: strings.Repeat("hunter2", 1<<18)}}
	info.VolumeMounts[0].Shared = &executor.SharedDevice{MountConfig: "hunter2"}
	if got := strings.Join(found(info), "\n"); got == "" || strings.Contains(got, "hunter2") {
		t.Error(got)
	}
}

func TestResourcesAreNeitherNegativeNorAbsurd(t *testing.T) {
	mustBeValid(t, executor.Resources{})
	mustBeValid(t, executor.Resources{MemoryMB: executor.MaxMB, DiskMB: executor.MaxMB, MaxPIDs: executor.MaxPIDLimit})
	want := []string{"memory_mb: -1: want at least 0", "disk_mb: -2: want at least 0", "max_pids: -3: want at least 0"}
	if diff := cmp.Diff(want, found(executor.Resources{MemoryMB: -1, DiskMB: -2, MaxPIDs: -3})); diff != "" {
		t.Error(diff)
	}
	want = []string{"memory_mb: 1099511627777: want at most 1099511627776", "disk_mb: 1099511627777: want at most 1099511627776",
		"max_pids: 4194305: want at most 4194304"}
	over := executor.Resources{MemoryMB: executor.MaxMB + 1, DiskMB: executor.MaxMB + 1, MaxPIDs: executor.MaxPIDLimit + 1}
	if diff := cmp.Diff(want, found(over)); diff != "" {
		t.Error(diff)
	}
}

func TestVolumeDriversAreSortedAndEachNamedOnce(t *testing.T) {
	info := executor.RunInfo{VolumeMounts: []executor.VolumeMount{{Driver: "nfs"}, {Driver: "local"}, {Driver: "nfs"}}}
	if diff := cmp.Diff([]string{"local", "nfs"}, info.VolumeDrivers()); diff != "" {
		t.Error(diff)
	}
	if got := (executor.RunInfo{}).VolumeDrivers(); len(got) != 0 {
		t.Error(got)
	}
}

func TestChecksHaveDefaultTimes(t *testing.T) {
	info := fullRunInfo()
	for _, test := range []struct {
		name      string
		got, want time.Duration
	}{
		{"connect timeout", info.Check.Checks[0].TCP.ConnectTimeout(), 500 * time.Millisecond},
		{"TCP interval", info.Check.Checks[0].TCP.Interval(), 2 * time.Second},
		{"default connect timeout", executor.TCPCheck{}.ConnectTimeout(), time.Second},
		{"request timeout", executor.HTTPCheck{RequestTimeoutMs: 20}.RequestTimeout(), 20 * time.Millisecond},
		{"HTTP interval", info.Check.Checks[1].HTTP.Interval(), 30 * time.Second},
		{"default request timeout", executor.HTTPCheck{}.RequestTimeout(), executor.DefaultCheckTimeout},
		{"start timeout", info.StartTimeout(), time.Minute},
	} {
		if test.got != test.want {
			t.Errorf("%s: %v, want %v", test.name, test.got, test.want)
		}
	}
}
