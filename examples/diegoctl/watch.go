package main

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/storage"
)

// news has a value whenever something has happened; one value stands for any
// number of events. It stays empty if there is no subscription.
func (c *call) news(ctx context.Context) <-chan struct{} {
	news := make(chan struct{}, 1)
	r, err := c.remote()
	if err != nil {
		return news
	}
	events, err := r.bbs.Subscribe(ctx, bbs.FromNow, storage.EventFilter{})
	if err != nil {
		return news
	}
	go func() {
		for range events {
			select {
			case news <- struct{}{}:
			case <-ctx.Done():
				return
			default:
			}
		}
	}()
	return news
}

// settle is how long a watch waits for more events before it looks, because
// events come in swarms.
const settle = 100 * time.Millisecond

// A frame on a terminal starts at home, the first one after a wipe. What is left
// below it of the frame before is removed.
const (
	home  = "\x1b[H"
	below = "\x1b[J"
	wipe  = "\x1b[2J"
)

// watch shows a command's view again whenever it changes, until it is
// interrupted: on a terminal in place, elsewhere below the one before.
func (c *call) watch(do action) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	news := c.news(ctx)
	inPlace := c.terminal && !c.Programs
	var last []byte
	for first := true; ; first = false {
		var frame bytes.Buffer
		c.Out = &frame
		err := do(c)
		c.Out = c.stdout
		if err != nil {
			return err
		}
		if first || !bytes.Equal(frame.Bytes(), last) {
			last = bytes.Clone(frame.Bytes())
			if err := c.frame(last, inPlace, first); err != nil {
				return err
			}
		}
		select {
		case <-c.ctx.Done():
			return nil
		case <-c.after(c.duration("interval")):
		case <-news:
			select {
			case <-c.ctx.Done():
				return nil
			case <-c.after(settle):
			}
		}
	}
}

func (c *call) frame(frame []byte, inPlace, first bool) error {
	var out bytes.Buffer
	switch {
	case inPlace && first:
		out.WriteString(wipe + home)
	case inPlace:
		out.WriteString(home)
	case !first && !c.Programs:
		out.WriteByte('\n')
	}
	if inPlace {
		frame = bytes.ReplaceAll(frame, []byte("\n"), []byte("\x1b[K\n"))
	}
	out.Write(frame)
	if inPlace {
		out.WriteString(below)
	}
	_, err := c.stdout.Write(out.Bytes())
	return err
}

// until calls look until it says that it is done: whenever something has
// happened, and every second. It gives up after --for, with the last state.
func (c *call) until(look func() (done bool, state string, err error)) error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	end := c.after(c.duration("for"))
	news := c.news(ctx)
	for {
		done, state, err := look()
		if done || err != nil {
			return err
		}
		select {
		case <-news:
		case <-c.after(time.Second):
		case <-end:
			return &patienceError{c.text("for"), state}
		case <-c.ctx.Done():
			return c.ctx.Err()
		}
	}
}

// A patienceError says that something was waited for in vain.
type patienceError struct{ limit, state string }

func (e *patienceError) Error() string {
	return fmt.Sprintf("not done after %s: %s", e.limit, e.state)
}
