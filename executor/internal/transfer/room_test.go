package transfer_test

import (
	"errors"
	"os"
	"testing"

	"github.com/diegosdk/diego/executor/internal/transfer"
)

var errFull = errors.New("full")

func isFull(err error) bool { return errors.Is(err, errFull) }

func TestRoomIsMadeAndUsedOnce(t *testing.T) {
	s := newServer(t)
	f, _ := newFetcher(t)
	broken := errors.New("broken")
	for _, test := range []struct {
		name     string
		results  []error
		attempts int
		want     error
		kept     bool
	}{
		{"no need", []error{nil}, 1, nil, true},
		{"another error", []error{broken}, 1, broken, true},
		{"enough", []error{errFull, nil}, 2, nil, false},
		{"too little", []error{errFull, errFull}, 2, errFull, false},
		{"another error then", []error{errFull, broken}, 2, broken, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			unused := fetch(t, f, transfer.Request{URL: s.URL + "/unused", CacheKey: "unused"})
			unused.Release()
			attempts := 0
			err := f.MakingRoom(t.Context(), isFull, func() error {
				attempts++
				return test.results[attempts-1]
			})
			if attempts != test.attempts || !errors.Is(err, test.want) {
				t.Errorf("after %d attempts: %v", attempts, err)
			}
			if len(test.results) == 2 && test.want == broken && !isFull(err) {
				t.Errorf("the second error hides the first: %v", err)
			}
			if _, err := os.Stat(unused.Path); (err == nil) != test.kept {
				t.Errorf("what is kept: %v", err)
			}
		})
	}
}

func TestEveryAttemptThatBeganBeforeThereWasRoomIsRepeated(t *testing.T) {
	s := newServer(t)
	f, _ := newFetcher(t)
	fetch(t, f, transfer.Request{URL: s.URL + "/unused", CacheKey: "unused"}).Release()
	inner, outer := 0, 0
	err := f.MakingRoom(t.Context(), isFull, func() error {
		if outer++; outer == 2 {
			return nil
		}
		err := f.MakingRoom(t.Context(), isFull, func() error { // by another container, meanwhile
			if inner++; inner == 2 {
				return nil
			}
			return errFull
		})
		if err != nil {
			t.Error(err)
		}
		return errFull
	})
	if err != nil || inner != 2 || outer != 2 {
		t.Errorf("after %d and %d attempts: %v", outer, inner, err)
	}
	late := 0
	if err := f.MakingRoom(t.Context(), isFull, func() error { late++; return errFull }); !isFull(err) || late != 1 {
		t.Errorf("with nothing removed since it began, after %d attempts: %v", late, err)
	}
}
