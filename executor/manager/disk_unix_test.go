//go:build unix

package manager_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/backendtest/scripted"
	"github.com/diegosdk/diego/executor/manager"
)

// A FIFO in place of a segment is a disk that does not answer until somebody reads.
func TestAMessageThatTheDiskDoesNotTakeHoldsNothingUp(t *testing.T) {
	dir := t.TempDir()
	m, err := manager.New(t.Context(), manager.Options{
		Backend: scripted.New(scripted.Options{Now: time.Now}), Dir: dir,
		Capacity: manager.Capacity{MemoryMB: 1000, DiskMB: 1000, Containers: 10},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "logs", "c"), 0o700); err != nil {
		t.Fatal(err)
	}
	fifo := filepath.Join(dir, "logs", "c", "stdout.00000000000000000000.log")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	news := m.Subscribe()
	running.Go(func() { m.Run(ctx) })
	written := make(chan string, 1)
	read := sync.OnceFunc(func() {
		go func() {
			f, err := os.Open(fifo)
			if err != nil {
				t.Error(err)
				written <- ""
				return
			}
			defer f.Close()
			line := make([]byte, len("hello\n"))
			n, _ := io.ReadFull(f, line)
			written <- string(line[:n])
		}()
	})
	defer running.Wait()
	defer cancel()
	defer read()

	m.Reserve(manager.Reservation{GUID: "c"})
	w := work(executor.Action{EmitProgress: &executor.EmitProgressAction{Action: do("wait forever"), StartMessage: "hello"}})
	if err := m.Initialize("c", w); err != nil {
		t.Fatal(err)
	}
	patience, end := context.WithTimeout(t.Context(), 10*time.Second)
	defer end()
	for {
		e, err := news.Next(patience)
		if err != nil {
			t.Fatalf("the container does not run while the disk does not answer: %v", err)
		}
		if e.Container.State == executor.Running {
			break
		}
	}
	m.Remaining() // answers
	read()
	if got := <-written; got != "hello\n" {
		t.Errorf("the disk got %q", got)
	}
}
