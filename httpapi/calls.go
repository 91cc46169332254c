package httpapi

import (
	"context"
	"iter"
	"net/http"
	"reflect"
	"slices"
	"time"

	"github.com/diegosdk/diego/internal/wire"
)

// This file and calls_bbs.go, calls_locks.go, calls_auctioneer.go and calls_cell.go are the
// tables of calls over HTTP. Handlers, clients, roles and docs/api.md follow
// from them.

// A CallInfo describes one call over HTTP.
type CallInfo struct {
	// Service is "bbs", "auctioneer" or "cell".
	Service string
	// Name is the client's method.
	Name string
	// Method and Path are those of the request.
	Method, Path string
	// Roles may make the call.
	Roles []Role
	// Doc describes the call in a sentence or two.
	Doc string
	// Repeatable says that the call is idempotent. Other calls are repeated only
	// under one request id.
	Repeatable bool
	// Arguments and Answer are the types of the bodies. Many says that the
	// answer is a list of Answers, and Feed that it is server-sent events.
	Arguments, Answer reflect.Type
	Many, Feed        bool
	// Session says that the request is upgraded to a connection that carries the
	// input and output of a program; docs/api.md describes it. Answer is then the
	// last message.
	Session bool
}

// Calls lists all calls over HTTP, in the order of the documentation.
func Calls() []CallInfo {
	return slices.Concat(describe("bbs", bbsCalls), describe("bbs", convergenceCalls), describe("bbs", lockCalls),
		describe("auctioneer", auctioneerCalls), describe("cell", cellCalls))
}

func describe[A any](service string, table []wire.Endpoint[A]) (list []CallInfo) {
	for _, e := range table {
		info := e.About()
		in, out := e.Types()
		c := CallInfo{
			Service: service, Name: info.Name, Method: info.Method, Path: info.Path, Doc: info.Doc,
			Repeatable: info.Repeat == wire.Always, Arguments: in, Answer: out,
			Feed: info.Method == http.MethodGet,
		}
		if out.Kind() == reflect.Func { // an iter.Seq2: its yield takes an item
			c.Many, c.Answer = true, out.In(0).In(0)
		}
		_, c.Session = e.(interface{ Session() })
		for _, role := range info.Roles {
			c.Roles = append(c.Roles, Role(role))
		}
		list = append(list, c)
	}
	return list
}

// Who may make a call.
var (
	consumers   = []Role{ConsumerRole, OperatorRole}
	readers     = []Role{ConsumerRole, OperatorRole, CellRole}
	everybody   = Roles
	cells       = []Role{CellRole}
	auctioneers = []Role{AuctioneerRole}
	operators   = []Role{OperatorRole}
	controllers = []Role{BBSRole}
	planners    = []Role{AuctioneerRole, BBSRole, OperatorRole}
	logReaders  = []Role{LogReaderRole, BBSRole, OperatorRole}
	workers     = []Role{ExecRole, OperatorRole}
	lockers     = []Role{LockerRole, OperatorRole}
	// A BBS passes an operator's requests on, also from its console to a cell.
	enquirers = []Role{BBSRole, OperatorRole}
)

// call makes the Info of a call. Reads may be repeated freely.
func call(name, path string, roles []Role, repeat wire.Repeat, doc string) wire.Info {
	info := wire.Info{Name: name, Method: http.MethodPost, Path: "/v1/" + path, Repeat: repeat, Doc: doc}
	for _, role := range roles {
		info.Roles = append(info.Roles, string(role))
	}
	return info
}

// maxHistories is how many histories one caller may read at a time. One may have
// definitions of 4 MiB for each of its revisions or events, and takes a multiple of
// that until it has been written.
const maxHistories = 2

// history is a call whose answer may be a hundred times as large as its arguments.
func history(info wire.Info) wire.Info {
	info.Each = maxHistories
	return info
}

// tell is a call without an answer.
func tell[A, In any](info wire.Info, serve func(context.Context, A, In) error) *wire.Call[A, In, wire.None] {
	return ask(info, func(ctx context.Context, api A, in In) (wire.None, error) {
		return wire.None{}, serve(ctx, api, in)
	})
}

// say makes a call without an answer.
func say[A, In any](ctx context.Context, client *wire.Client, c *wire.Call[A, In, wire.None], in In) error {
	_, err := c.Do(ctx, client, in)
	return err
}

// ask is a call with an answer.
func ask[A, In, Out any](info wire.Info, serve func(context.Context, A, In) (Out, error)) *wire.Call[A, In, Out] {
	return &wire.Call[A, In, Out]{Info: info, Serve: serve}
}

// askPlain is a call without arguments.
func askPlain[A, Out any](info wire.Info, method func(A, context.Context) (Out, error)) *wire.Call[A, wire.None, Out] {
	return ask(info, func(ctx context.Context, api A, _ wire.None) (Out, error) { return method(api, ctx) })
}

// maxLists is how many lists one caller is sent at a time, of all kinds together. Each
// may keep a connection of the store, which has 14 of them unless set otherwise.
const maxLists = 8

// list is a call whose answer is a list.
func list[A, In, Item any](info wire.Info, serve func(context.Context, A, In) iter.Seq2[Item, error]) *wire.List[A, In, Item] {
	info.Each, info.Shares = maxLists, "lists"
	return &wire.List[A, In, Item]{Info: info, Serve: serve}
}

// forCell makes c a call that a cell may make for itself only.
func forCell[A, In, Out any](c *wire.Call[A, In, Out], cell func(In) string) *wire.Call[A, In, Out] {
	c.Cell = cell
	return c
}

// ofDomain makes l a list that some callers may read only of their own domains.
func ofDomain[A, In, Item any](l *wire.List[A, In, Item], domain func(context.Context, A, In) (string, error)) *wire.List[A, In, Item] {
	l.Domain = domain
	return l
}

// long makes l a list that lasts as long as both sides want.
func long[A, In, Item any](l *wire.List[A, In, Item]) *wire.List[A, In, Item] {
	l.Long, l.Silence = true, -1
	l.Each, l.Shares = 0, "" // other bounds hold for it
	return l
}

const (
	// defaultHeartbeat is how often a feed says that it is alive. The answer
	// carries the interval, and clients go elsewhere after three missing
	// heartbeats.
	defaultHeartbeat = 5 * time.Second
	// feedSilence is how long a client waits for a feed that does not carry an
	// interval, for example of a server of an older version.
	feedSilence = time.Minute
)
