package process

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/diegosdk/diego/internal/testenv"
)

func TestOneLookServesAllThatWaitAndNoneThatHasBegunBefore(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		begin := make(chan struct{})
		taken := 0
		l := looks[int]{take: func() (int, error) {
			taken++
			n := taken
			<-begin
			return n, nil
		}}
		const waiting = 1000
		var found [1 + waiting]int
		var joined sync.WaitGroup
		join := func(i int) {
			joined.Go(func() {
				var err error
				if found[i], err = l.join(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		join(0)
		synctest.Wait() // the first look has begun
		for i := range waiting {
			join(1 + i)
		}
		synctest.Wait()
		close(begin)
		joined.Wait()
		for i, n := range found {
			if want := min(i, 1) + 1; n != want {
				t.Errorf("caller %d was served by look %d, want %d", i, n, want)
			}
		}
		if taken != 2 {
			t.Errorf("%d looks were taken, want 2", taken)
		}
	})
}

func TestAFailedLookFailsOnlyThoseThatWaitedForIt(t *testing.T) {
	failure := errors.New("too many open files")
	l := looks[int]{take: func() (int, error) { return 0, failure }}
	if _, err := l.join(t.Context()); !errors.Is(err, failure) {
		t.Errorf("it says %v, want the failure", err)
	}
	l.take = func() (int, error) { return 7, nil }
	if n, err := l.join(t.Context()); n != 7 || err != nil {
		t.Errorf("after the failure it says %d, %v", n, err)
	}
}

func TestAWaitForALookEndsWithItsContext(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		begin := make(chan struct{})
		l := looks[int]{take: func() (int, error) { <-begin; return 7, nil }}
		ctx, cancel := context.WithCancel(t.Context())
		var late, patient error
		var joined sync.WaitGroup
		joined.Go(func() { _, late = l.join(ctx) })
		joined.Go(func() { _, patient = l.join(t.Context()) })
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(begin)
		joined.Wait()
		if !errors.Is(late, context.Canceled) || patient != nil {
			t.Errorf("the one that gave up has %v, the other %v", late, patient)
		}
	})
}
