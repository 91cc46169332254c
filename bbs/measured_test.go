package bbs_test

import (
	"context"
	"reflect"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/memstore"
)

// calls keeps the label "call" of what is counted.
type calls struct {
	auction.NoMetrics
	names []string
}

func (c *calls) Count(name string, _ int64, labels ...auction.Label) {
	for _, l := range labels {
		if name == "bbs_errors_total" && l.Name == "call" {
			c.names = append(c.names, l.Value)
		}
	}
}

// standby commits nothing.
type standby struct{ storage.Store }

func (standby) Commit(context.Context, storage.Batch) (storage.Cursor, error) {
	return 0, &bbs.NotLeaderError{Role: "bbs"}
}

func TestACallThatFailsIsCountedByTheNameOfItsMethod(t *testing.T) {
	counted := new(calls)
	b, err := bbs.New(bbs.Options{Store: standby{memstore.New(nil)}, Metrics: counted})
	if err != nil {
		t.Fatal(err)
	}
	commits := map[string]bool{}
	service := reflect.ValueOf(b)
	for i := range service.NumMethod() {
		name, f := service.Type().Method(i).Name, service.Method(i)
		args := []reflect.Value{}
		for k := range f.Type().NumIn() {
			arg := reflect.New(f.Type().In(k)).Elem()
			if arg.Type() == reflect.TypeFor[context.Context]() {
				arg.Set(reflect.ValueOf(t.Context()))
			}
			args = append(args, arg)
		}
		counted.names = nil
		f.Call(args)
		for _, got := range counted.names {
			if commits[name] = true; got != name {
				t.Errorf("%s counts the call %q", name, got)
			}
		}
	}
	if len(commits) < 25 {
		t.Errorf("only these methods count a failure: %v", commits)
	}
}
