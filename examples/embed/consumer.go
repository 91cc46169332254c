package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net"
	"net/http"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// A consumer follows events, and receives the callbacks of tasks that have ended.
type consumer struct {
	ctx       context.Context
	bbs       bbs.API
	next      func() (storage.Event, error, bool)
	stop      func()
	server    *http.Server
	completed chan task.CallbackResponse

	callbackURL string
}

func newConsumer(ctx context.Context, api bbs.API) (*consumer, error) {
	events, err := api.Subscribe(ctx, bbs.FromNow, storage.EventFilter{})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := &consumer{ctx: ctx, bbs: api, completed: make(chan task.CallbackResponse, 1), callbackURL: "http://" + listener.Addr().String()}
	c.next, c.stop = iter.Pull2(events)
	c.server = &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var done task.CallbackResponse
		if err := json.NewDecoder(r.Body).Decode(&done); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case c.completed <- done:
		default: // it was told already
		}
	})}
	go func() { _ = c.server.Serve(listener) }() // until close
	return c, nil
}

func (c *consumer) close() {
	c.stop()
	_ = c.server.Close()
}

// until looks whether something is done, and again after each event.
func (c *consumer) until(done func() (bool, error)) error {
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		if _, err, ok := c.next(); err != nil {
			return err
		} else if !ok {
			return errors.New("the events have ended")
		}
	}
}

// untilRunning waits until exactly so many instances run.
func (c *consumer) untilRunning(want int) error {
	return c.until(func() (bool, error) {
		running, others := 0, 0
		for a, err := range c.bbs.ResolvedLRPs(c.ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{"web"}}) {
			switch {
			case err != nil:
				return false, err
			case a.State == lrp.Running:
				running++
			default:
				others++
			}
		}
		if running != want || others > 0 {
			return false, nil
		}
		fmt.Println(want, "instances run")
		return true, nil
	})
}
