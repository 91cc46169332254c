package task_test

import (
	"errors"
	"testing"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/task"
)

func TestAnEventKindIsText(t *testing.T) {
	for kind, text := range map[task.EventKind]string{task.Created: "created", task.Changed: "changed", task.Removed: "removed"} {
		got, err := kind.MarshalText()
		if err != nil || string(got) != text {
			t.Errorf("got %q, %v", got, err)
		}
		var back task.EventKind
		if err := back.UnmarshalText(got); err != nil || back != kind {
			t.Errorf("got %v, %v", back, err)
		}
	}
	for _, kind := range []task.EventKind{0, 9} {
		if _, err := kind.MarshalText(); !errors.Is(err, executor.ErrInvalid) {
			t.Errorf("%d: got %v", kind, err)
		}
	}
	var k task.EventKind
	if err := k.UnmarshalText([]byte("")); !errors.Is(err, executor.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}
