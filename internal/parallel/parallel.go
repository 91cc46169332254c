// Package parallel calls a function many times, several at a time, or one after
// the other if a test or a simulation needs an order.
package parallel

import (
	"context"
	"sync"
)

// Each calls f for 0 … n−1, at most limit at a time, and returns when all calls
// have. With a limit of 1 it is an ordinary loop.
func Each(n, limit int, f func(i int)) {
	if limit == 1 || n < 2 {
		for i := range n {
			f(i)
		}
		return
	}
	var wg sync.WaitGroup
	next := make(chan int)
	for range min(n, limit) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}

// During runs f until the function that it returns is called, which waits for
// f's end.
func During(ctx context.Context, f func(context.Context)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(ctx)
	}()
	return func() { cancel(); <-done }
}
