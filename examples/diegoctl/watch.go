package main

import (
	"bytes"
	"context"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/storage"
)

// news tells that something has happened: one value stands for any number of
// events. Whoever cannot subscribe looks at intervals only.
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

// settle is how long a watch waits for more events before it looks, as they
// come in swarms.
const settle = 100 * time.Millisecond

// The two sequences that begin a frame on a terminal: the cursor goes home, and
// what is left of the frame before is removed behind the new one.
const (
	home  = "\x1b[H"
	below = "\x1b[J"
	wipe  = "\x1b[2J"
)

// watch shows the command's view again and again until it is interrupted. Where the output is no terminal, or for programs, only
// a view that has changed is written again.
func (c *call) watch() error {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	news := c.news(ctx)
	inPlace := c.terminal && !c.forPrograms()
	var last []byte
	for first := true; ; first = false {
		var frame bytes.Buffer
		c.out = &frame
		err := c.command.run(c)
		c.out = c.stdout
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
	case !first && !c.forPrograms():
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
