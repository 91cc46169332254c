package exported_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/internal/exported"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

// later is a member that a later version adds.
const later = "added_later"

// add puts the member into every object of a JSON text that is a struct in Go. A
// map has entries instead, which are not members.
func add(t *testing.T, text []byte, of reflect.Type) []byte {
	t.Helper()
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	text = bytes.TrimSpace(text)
	switch {
	case of == reflect.TypeFor[executor.Action](), of == reflect.TypeFor[executor.Check]():
		return text // one of several kinds; another kind is not an addition
	case of.Kind() == reflect.Struct && text[0] == '{':
		object := decode[map[string]json.RawMessage](t, text)
		for _, f := range reflect.VisibleFields(of) {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if member, there := object[name]; there && f.IsExported() {
				object[name] = add(t, member, f.Type)
			}
		}
		object[later] = json.RawMessage(`{"of":["any",1,null]}`)
		return encode(t, object)
	case of.Kind() == reflect.Map && text[0] == '{':
		object := decode[map[string]json.RawMessage](t, text)
		for name := range maps.Clone(object) {
			object[name] = add(t, object[name], of.Elem())
		}
		return encode(t, object)
	case of.Kind() == reflect.Slice && text[0] == '[':
		list := decode[[]json.RawMessage](t, text)
		for i := range list {
			list[i] = add(t, list[i], of.Elem())
		}
		return encode(t, list)
	}
	return text
}

func decode[T any](t *testing.T, text []byte) (out T) {
	t.Helper()
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return out
}

func encode(t *testing.T, value any) []byte {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func into(t *testing.T, of reflect.Type, text []byte) any {
	t.Helper()
	value := reflect.New(of)
	if err := json.Unmarshal(text, value.Interface()); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	return value.Elem().Interface()
}

func TestAnAnswerOfALaterVersionIsReadWithoutWhatItAdds(t *testing.T) {
	for _, c := range httpapi.Calls() {
		t.Run(c.Path, func(t *testing.T) {
			text := encode(t, exported.Full(c.Answer))
			more := add(t, text, c.Answer)
			if c.Answer.Kind() == reflect.Struct && !bytes.Contains(more, []byte(later)) {
				t.Errorf("nothing was added to %s", more)
			}
			if now, then := into(t, c.Answer, text), into(t, c.Answer, more); !reflect.DeepEqual(now, then) {
				t.Errorf("got %+v\nwant %+v", then, now)
			}
		})
	}
}

func TestWhatIsEncodedIsReadAgainAsItWas(t *testing.T) {
	for _, c := range httpapi.Calls() {
		for _, of := range []reflect.Type{c.Arguments, c.Answer} {
			if of == nil {
				continue
			}
			text := encode(t, exported.Full(of))
			again := encode(t, into(t, of, text))
			if diff := cmp.Diff(decode[any](t, text), decode[any](t, again)); diff != "" {
				t.Errorf("%s: %v is read as another:\n%s", c.Path, of, diff)
			}
		}
	}
}

func TestARequestWithAMemberOfALaterVersionIsRefusedByItsName(t *testing.T) {
	// No call gets as far as these.
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{
		BBS: struct{ bbs.API }{}, Convergence: struct{ bbs.ConvergenceAPI }{}, Locks: struct{ bbs.LocksAPI }{},
		Auctioneer: struct{ auction.API }{}, Cell: struct{ rep.API }{}, AllowPlain: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range httpapi.Calls() {
		if c.Feed {
			continue
		}
		body := add(t, encode(t, exported.Full(c.Arguments)), c.Arguments)
		answer := httptest.NewRecorder()
		request := httptest.NewRequest(c.Method, c.Path, bytes.NewReader(body))
		request.Header.Set("Content-Type", "application/json")
		handler.ServeHTTP(answer, request)
		if answer.Code != http.StatusBadRequest || !strings.Contains(answer.Body.String(), later) {
			t.Errorf("%s: the answer is %d %s", c.Path, answer.Code, answer.Body)
		}
	}
}

// Clients read what a later server answers: one answer, a problem, a list, a feed.
func TestClientsReadTheAnswersOfALaterServer(t *testing.T) {
	calls := map[string]httpapi.CallInfo{}
	for _, c := range httpapi.Calls() {
		calls[c.Path] = c
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := calls[r.URL.Path]
		item := add(t, encode(t, exported.Full(c.Answer)), c.Answer)
		switch {
		case c.Name == "StopLRP":
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusConflict)
			fmt.Fprintf(w, `{"type":"urn:diego:problem:%s","title":"a later kind","status":409,"detail":"later","%s":1}`, later, later)
		case c.Feed:
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "id: 1\nevent: added_later\nlater: 1\ndata: %s\n\n", item)
		case c.Many:
			w.Header().Set("Content-Type", "application/x-ndjson")
			fmt.Fprintf(w, "{\"item\":%s}\n{\"end\":1}\n", item)
		default:
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprintf(w, "%s\n", item)
		}
	}))
	defer server.Close()
	o := httpapi.ClientOptions{Addresses: []string{server.URL}, AllowPlain: true, CellID: "cell-1"}
	cell, err := httpapi.NewRemoteCell(o)
	if err != nil {
		t.Fatal(err)
	}
	o.CellID = ""
	remote, err := httpapi.NewRemoteBBS(o)
	if err != nil {
		t.Fatal(err)
	}
	if s, err := cell.State(t.Context()); err != nil || s.ID != "cell_id" {
		t.Errorf("State answers %+v, %v", s, err)
	}
	var unknown *problem.RemoteError
	if err := cell.StopLRP(t.Context(), lrp.Key{ProcessGUID: "web"}, lrp.InstanceKey{InstanceGUID: "i", CellID: "cell-1"}); !errors.As(err, &unknown) {
		t.Errorf("a kind of problem that is not known yet is the error %v", err)
	}
	var tasks []string
	for task, err := range remote.Tasks(t.Context(), storage.TaskFilter{}) {
		if err != nil {
			t.Fatal(err)
		}
		tasks = append(tasks, task.GUID)
	}
	if !slices.Equal(tasks, []string{"task_guid"}) {
		t.Errorf("got tasks %q", tasks)
	}
	events, err := remote.Subscribe(t.Context(), bbs.FromStart, storage.EventFilter{})
	if err != nil {
		t.Fatal(err)
	}
	for event, err := range events {
		if err != nil || event.Sequence != 1 || event.Domain == nil {
			t.Errorf("got event %+v, %v", event, err)
		}
		break
	}
}
