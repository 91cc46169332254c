package manager_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
)

// said is what a log holds, in pieces that begin with their source.
func said(t *testing.T, m *manager.Manager, guid string, s manager.Stream) (list []string) {
	t.Helper()
	r, err := m.Log(context.Background(), guid, s, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	buffer := make([]byte, 1000)
	for {
		n, err := r.Read(buffer)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, r.Source()+": "+string(buffer[:n]))
	}
}

func TestAMessageOfFailureIsWrittenToStderr(t *testing.T) {
	c := newCell(t, func(o *manager.Options) { o.Dir = t.TempDir() })
	c.launch("c", with(work(executor.Action{EmitProgress: &executor.EmitProgressAction{
		Action: do("exit 3"), FailureMessagePrefix: "it failed", LogSource: "STEP",
	}}), func(w *manager.Work) { w.LogSource = "APP" }))
	c.advance(time.Second)
	if got, want := said(t, c.Manager, "c", manager.Stderr), []string{"STEP: it failed: /do: exit status 3\n"}; !slices.Equal(got, want) {
		t.Errorf("stderr says %q, want %q", got, want)
	}
}

func TestWhatAFailedCheckWritesHasItsSource(t *testing.T) {
	for _, d := range []executor.CheckDefinition{
		{LogSource: "CHECK", Checks: []executor.Check{{TCP: &executor.TCPCheck{Port: 8080}}}},
		{LogSource: "CHECK", ReadinessChecks: []executor.Check{{TCP: &executor.TCPCheck{Port: 8080}}}},
	} {
		c := newCell(t, func(o *manager.Options) { o.Dir = t.TempDir() })
		c.launch("c", with(work(do("wait forever")), func(w *manager.Work) {
			w.LogSource, w.Check, w.Ports = "APP", &d, []uint16{8080}
		}))
		c.advance(0)
		want := []string{"CHECK: TCP check of port 8080: container \"c\": port 8080: connection refused\n"}
		if got := said(t, c.Manager, "c", manager.Health); !slices.Equal(got, want) {
			t.Errorf("the log of health says %q, want %q", got, want)
		}
	}
}
