package executor_test

import (
	"errors"
	"io/fs"
	"testing"

	"github.com/diegosdk/diego/executor"
)

func TestABackendErrorSaysWhatToWhomAndWhy(t *testing.T) {
	tests := []struct {
		err  *executor.BackendError
		want string
	}{
		{&executor.BackendError{Kind: executor.ErrNoContainer, GUID: "c"}, `container "c": no such container`},
		{&executor.BackendError{Kind: executor.ErrNoUser, GUID: "c", Detail: "vcap"}, `container "c": no such user: vcap`},
		{&executor.BackendError{Kind: executor.ErrNoCommand, GUID: "c", Detail: "/bin/app", Cause: fs.ErrPermission},
			`container "c": cannot execute the command: /bin/app: permission denied`},
	}
	for _, test := range tests {
		if got := test.err.Error(); got != test.want {
			t.Errorf("it says %q, want %q", got, test.want)
		}
		if !errors.Is(test.err, test.err.Kind) || test.err.Cause != nil && !errors.Is(test.err, test.err.Cause) {
			t.Errorf("%v does not wrap its kind and its cause", test.err)
		}
	}
}

func TestAnExitSaysHowAProcessEnded(t *testing.T) {
	tests := []struct {
		exit    executor.Exit
		success bool
		want    string
	}{
		{executor.Exit{}, true, "exit status 0"},
		{executor.Exit{Status: 3}, false, "exit status 3"},
		{executor.Exit{Signal: 9}, false, "killed by signal 9"},
		{executor.Exit{Signal: 9, OutOfMemory: true}, false, "killed: the container ran out of memory"},
		{executor.Exit{Status: 137, OutOfMemory: true}, false, "exit status 137, after another process was killed: the container ran out of memory"},
		{executor.Exit{Signal: 6, OutOfMemory: true}, false, "killed by signal 6, after another process was killed: the container ran out of memory"},
	}
	for _, test := range tests {
		if test.exit.Success() != test.success || test.exit.String() != test.want {
			t.Errorf("%+v: success %v, %q", test.exit, test.exit.Success(), test.exit)
		}
	}
}

func TestASignalHasAName(t *testing.T) {
	for signal, want := range map[executor.Signal]string{executor.Terminate: "TERM", executor.Kill: "KILL", 0: "Signal(0)"} {
		if got := signal.String(); got != want {
			t.Errorf("%d is %q, want %q", signal, got, want)
		}
	}
}

func TestAHostHasWhatItDoesNotMiss(t *testing.T) {
	h := executor.Host{Features: []executor.Feature{{Name: executor.FeatureUsers}, {Name: executor.FeatureSeccomp, Missing: "built without it"}}}
	for name, want := range map[executor.FeatureName]bool{
		executor.FeatureUsers: true, executor.FeatureSeccomp: false, executor.FeatureRootFS: false} {
		if h.Has(name) != want {
			t.Errorf("Has(%q) = %v", name, h.Has(name))
		}
	}
}
