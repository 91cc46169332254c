package bbs

import (
	"reflect"
	"testing"

	"github.com/diegosdk/diego/storage"
)

func TestCallsAreRememberedUnderNamesThatEveryReleaseUses(t *testing.T) {
	for method := range rememberedAs {
		if _, ok := reflect.TypeFor[*BBS]().MethodByName(method); !ok {
			t.Errorf("%s is not a method", method)
		}
	}
	ctx := storage.WithRequestID(t.Context(), "7")
	for method, want := range map[string]string{
		"Desire": "Desire:7", "DeleteDeployment": "Delete:7", "DeleteTask": "DeleteTask:7", "FailActualLRP": "Fail:7", "FailTask": "FailTask:7",
		"CrashLRP": "Crash:7", "EvacuateCrashedLRP": "Crash:7", "RejectStartedTask": "RejectTask:7", "RejectTask": "RejectTask:7",
	} {
		if got := requestID(ctx, method); got != want {
			t.Errorf("a call of %s is remembered as %q, want %q", method, got, want)
		}
	}
}
