package task

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
)

type brokenRecord struct {
	name   string
	record *Task
}

// brokenRecords are records that no sequence of commands makes.
func brokenRecords(t testing.TB) []brokenRecord {
	records := records(t)
	var list []brokenRecord
	forge := func(name string, s State, change func(*Task)) {
		record := *records[s]
		change(&record)
		list = append(list, brokenRecord{name, &record})
	}
	forge("no guid", Pending, func(t *Task) { t.GUID = "" })
	forge("no domain", Pending, func(t *Task) { t.Domain = "" })
	forge("no state", Pending, func(t *Task) { t.State = Absent })
	forge("unknown state", Pending, func(t *Task) { t.State = numStates })
	forge("PENDING on a cell", Pending, func(t *Task) { t.CellID, t.InstanceGUID = "α", "i" })
	forge("RUNNING nowhere", Running, func(t *Task) { t.CellID, t.InstanceGUID = "", "" })
	forge("RUNNING without a cell", Running, func(t *Task) { t.CellID = "" })
	forge("RUNNING without an instance", Running, func(t *Task) { t.InstanceGUID = "" })
	forge("COMPLETED without an instance", Completed, func(t *Task) { t.InstanceGUID = "" })
	forge("failed without a reason", Completed, func(t *Task) { t.Failed, t.Result = true, "" })
	forge("a reason without failure", Completed, func(t *Task) { t.FailureReason = "r" })
	forge("failed with a result", Completed, func(t *Task) { t.Failed, t.FailureReason = true, "r" })
	forge("PENDING and failed", Pending, func(t *Task) { t.Failed, t.FailureReason = true, "r" })
	forge("RUNNING with a result", Running, func(t *Task) { t.Result = "r" })
	forge("long failure reason", Completed, func(t *Task) {
		t.Failed, t.Result, t.FailureReason = true, "", strings.Repeat("r", executor.MaxReasonBytes+1)
	})
	forge("long rejection reason", Completed, func(t *Task) {
		t.RejectionCount, t.RejectionReason = 1, strings.Repeat("r", executor.MaxReasonBytes+1)
	})
	forge("big result", Completed, func(t *Task) { t.Result = strings.Repeat("r", MaxResultBytes+1) })
	forge("negative rejections", Pending, func(t *Task) { t.RejectionCount = -1 })
	forge("too many rejections", Pending, func(t *Task) { t.RejectionCount, t.RejectionReason = maxRetries+1, "r" })
	forge("rejections without a reason", Pending, func(t *Task) { t.RejectionCount = 1 })
	forge("a reason without rejections", Pending, func(t *Task) { t.RejectionReason = "r" })
	forge("never created", Pending, func(t *Task) { t.CreatedAt = time.Time{} })
	forge("never updated", Pending, func(t *Task) { t.UpdatedAt = time.Time{} })
	forge("never completed", Completed, func(t *Task) { t.FirstCompletedAt = time.Time{} })
	forge("RESOLVING and never completed", Resolving, func(t *Task) { t.FirstCompletedAt = time.Time{} })
	forge("created in 1969", Pending, func(t *Task) { t.CreatedAt = time.Unix(-1, 0) })
	forge("updated in 2300", Pending, func(t *Task) { t.UpdatedAt = time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC) })
	forge("PENDING after completion", Pending, func(t *Task) { t.FirstCompletedAt = epoch })
	forge("RUNNING after completion", Running, func(t *Task) { t.FirstCompletedAt = epoch })
	forge("no tag", Pending, func(t *Task) { t.ModificationTag = ModificationTag{} })
	forge("negative tag", Pending, func(t *Task) { t.ModificationTag.Index = -1 })
	forge("last tag", Pending, func(t *Task) { t.ModificationTag.Index = math.MaxInt64 })
	return list
}

func TestValidateFindsBrokenInvariants(t *testing.T) {
	for _, test := range brokenRecords(t) {
		var broken *InvariantError
		if err := test.record.Validate(); !errors.As(err, &broken) {
			t.Errorf("%s: %v", test.name, err)
		} else if want := fmt.Sprintf("task %q: record breaks an invariant: %s", test.record.GUID, broken.Rule); err.Error() != want {
			t.Errorf("%s: %q, want %q", test.name, err, want)
		}
	}
}

func TestValidateAcceptsWhatStepMakes(t *testing.T) {
	for state, record := range records(t) {
		if record == nil {
			continue
		}
		if err := record.Validate(); err != nil {
			t.Errorf("%v: %v", state, err)
		}
	}
}

func TestValidateNamesTheFieldTheValueAndTheLimit(t *testing.T) {
	ten := strings.Repeat("x", 10*1024)
	for _, test := range []struct {
		name   string
		change func(*Task)
		want   string // without "invalid input: "; empty if accepted
	}{
		{"guid", func(t *Task) { t.GUID = "a/b" }, "task_guid: a/b: want 1 to 255 letters, digits, - and _"},
		{"longest guid", func(t *Task) { t.GUID = strings.Repeat("g", 255) }, ""},
		{"long domain", func(t *Task) { t.Domain = ten }, "domain: " + ten[:64] + "…: want 1 to 255 bytes of UTF-8 without NUL"},
		{"no memory limit", func(t *Task) { t.MemoryMB = 0 }, ""},
		{"memory", func(t *Task) { t.MemoryMB = -5 }, "memory_mb: -5: want at least 0"},
		{"disk", func(t *Task) { t.DiskMB = -5 }, "disk_mb: -5: want at least 0"},
		{"pids", func(t *Task) { t.MaxPIDs = -5 }, "max_pids: -5: want at least 0"},
		{"root fs", func(t *Task) { t.RootFS = "linux" }, "root_fs: linux: want a URL with a scheme"},
		{"longest annotation", func(t *Task) { t.Annotation = ten }, ""},
		{"annotation", func(t *Task) { t.Annotation = ten + "x" }, "annotation: 10241 bytes: want at most 10240 bytes"},
		{"no callback", func(t *Task) { t.CompletionCallbackURL = "" }, ""},
		{"callback scheme", func(t *Task) { t.CompletionCallbackURL = "ftp://host/x" }, "completion_callback_url: ftp://host/x: want an http or https URL with a host"},
		{"callback host", func(t *Task) { t.CompletionCallbackURL = "http:///x" }, "completion_callback_url: http:///x: want an http or https URL with a host"},
		{"callback URL", func(t *Task) { t.CompletionCallbackURL = "http://[x" }, "completion_callback_url: http://[x: want an http or https URL with a host"},
		{"placement tag", func(t *Task) { t.PlacementTags = []string{"a", ""} }, "placement_tags[1]: want 1 to 255 bytes of UTF-8 without NUL"},
		{"placement tags", func(t *Task) { t.PlacementTags = strings.Split(strings.Repeat("a ", 10001), " ")[:10001] },
			"placement_tags: 10001: want at most 10000 elements"},
		{"metric tag with neither", func(t *Task) { t.MetricTags = map[string]MetricTag{"k": {}} }, "metric_tags.k.static: want exactly one of static and dynamic"},
		{"metric tag with both", func(t *Task) { t.MetricTags = map[string]MetricTag{"k": {Static: "s", Dynamic: "INDEX"}} },
			"metric_tags.k.static: s: want exactly one of static and dynamic"},
		{"metric tag", func(t *Task) { t.MetricTags = map[string]MetricTag{"k": {Dynamic: "GUID"}} }, "metric_tags.k.dynamic: GUID: want INDEX or INSTANCE_GUID"},
		{"metrics guid", func(t *Task) { t.MetricsGUID = "m" }, "metric_tags.source_id: want the static tag m"},
		{"source id", func(t *Task) { t.MetricsGUID, t.MetricTags = "m", map[string]MetricTag{"source_id": {Static: "m"}} }, ""},
		{"metrics guid without tags", func(t *Task) { t.MetricsGUID, t.MetricTags = "m", nil }, ""},
		{"user", func(t *Task) { t.ImageUsername = "u" }, "image_username: u: want set together with image_password, or not at all"},
		{"password", func(t *Task) { t.ImagePassword = "p" }, "image_username: want set together with image_password, or not at all"},
		{"credentials", func(t *Task) { t.ImageUsername, t.ImagePassword = "u", "p" }, ""},
		{"several", func(t *Task) { t.MemoryMB, t.Annotation = -1, ten+"x" },
			"memory_mb: -1: want at least 0; annotation: 10241 bytes: want at most 10240 bytes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			record := *records(t)[Pending]
			test.change(&record)
			err := record.Validate()
			if test.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, executor.ErrInvalid) {
				t.Fatalf("error %v", err)
			}
			if got := strings.TrimPrefix(err.Error(), "invalid input: "); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			// The consumer is told the same.
			if _, desireErr := Step(nil, Desire{GUID: record.GUID, Domain: record.Domain, Definition: record.Definition}, epoch, Policy{}); desireErr == nil || desireErr.Error() != err.Error() {
				t.Errorf("desiring it: %v", desireErr)
			}
		})
	}
}

func TestADefinitionIsValidatedAlone(t *testing.T) {
	d := definition()
	if err := d.Validate(); err != nil {
		t.Error(err)
	}
	d.Action = executor.Action{}
	if err := d.Validate(); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("no action: %v", err)
	}
}

// What is stored may be larger, since an earlier release took it.
func TestOnlyANewTaskMustNotBeLarge(t *testing.T) {
	d := definition()
	d.VolumeMountedFiles = []executor.File{{Path: "f", Content: strings.Repeat("x", executor.MaxFilesBytes)}}
	if _, err := Step(nil, Desire{GUID: "t", Domain: "d", Definition: d}, epoch, Policy{}); err != nil {
		t.Errorf("with large files: %v", err)
	}
	for want, change := range map[string]func(*Definition){
		"want at most 262144 bytes as JSON, beside files": func(d *Definition) {
			d.Env = slices.Repeat([]executor.EnvVar{{Name: "A", Value: strings.Repeat("x", 100<<10)}}, 3)
		},
		"volume_mounted_files: 2097177 bytes: want at most 1572864 bytes as JSON, together with their paths": func(d *Definition) {
			d.VolumeMountedFiles[0].Content = strings.Repeat("<", executor.MaxFilesBytes/3)
		},
		"volume_mounted_files[0].path: 4096 bytes: want at most 4095 bytes": func(d *Definition) {
			d.VolumeMountedFiles[0].Path = strings.Repeat("p", 4096)
		},
		"placement_tags: 101: want at most 100 elements": func(d *Definition) { d.PlacementTags = slices.Repeat([]string{"a"}, 101) },
		"placement_tags[1]: a: want a tag that the list does not have yet": func(d *Definition) {
			d.PlacementTags = []string{"a", "a"}
		},
	} {
		d := d
		d.VolumeMountedFiles = slices.Clone(d.VolumeMountedFiles)
		change(&d)
		if err := d.Validate(); err != nil {
			t.Errorf("stored: %v", err)
		}
		if _, err := Step(nil, Desire{GUID: "t", Domain: "d", Definition: d}, epoch, Policy{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("a new one: got %v, want %q", err, want)
		}
	}
}
