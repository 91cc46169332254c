package life_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/diegosdk/diego/executor/internal/life"
	"github.com/diegosdk/diego/internal/testenv"
)

func TestAWriterWaitsForReadersUntilItsContextEnds(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		var mu sync.RWMutex
		mu.RLock()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := life.Lock(ctx, &mu); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while somebody reads: %v", err)
		}
		time.AfterFunc(time.Hour, mu.RUnlock)
		if err := life.Lock(t.Context(), &mu); err != nil || mu.TryRLock() {
			t.Errorf("after the reader: %v, or it is not locked", err)
		}
	})
}

func TestAReaderWaitsForAWriterUntilAllIsOver(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		var mu sync.RWMutex
		errOver := errors.New("over")
		end := time.Now().Add(2 * time.Hour)
		over := func() error {
			if time.Now().Before(end) {
				return nil
			}
			return errOver
		}
		mu.Lock()
		time.AfterFunc(time.Hour, mu.Unlock)
		if err := life.RLock(&mu, over); err != nil || mu.TryLock() {
			t.Errorf("after the writer: %v, or it is not locked", err)
		}
		mu.RUnlock()
		mu.Lock()
		if err := life.RLock(&mu, over); err != errOver {
			t.Errorf("behind a writer that goes on: %v", err)
		}
		mu.Unlock()
		if err := life.RLock(&mu, over); err != errOver || !mu.TryLock() {
			t.Errorf("when all is over: %v, or it is locked", err)
		}
	})
}

func TestAReaderThatComesTogetherWithTheEndLocksNothing(t *testing.T) {
	var mu sync.RWMutex
	errOver, asked := errors.New("over"), 0
	err := life.RLock(&mu, func() error {
		if asked++; asked > 1 {
			return errOver
		}
		return nil
	})
	if err != errOver || !mu.TryLock() {
		t.Errorf("%v, or it is locked", err)
	}
}
