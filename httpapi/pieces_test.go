package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/rep"
)

// taker is an auctioneer and a cell that take what they get.
type taker struct {
	rep.API
	calls   int
	taken   []string
	reasons []string
	refuse  string // the cell refuses this one
	fail    int    // the number of the call that fails
}

func (t *taker) take(items []auction.Item) error {
	if t.calls++; t.calls == t.fail {
		return errors.New("it is broken")
	}
	for _, item := range items {
		t.taken = append(t.taken, item.GUID)
	}
	return nil
}

func (t *taker) Request(_ context.Context, items ...auction.Item) error { return t.take(items) }

func (t *taker) Plan(context.Context, ...auction.Item) (auction.Result, error) {
	return auction.Result{}, nil
}

func (t *taker) Perform(_ context.Context, w auction.Work) (refused []auction.Rejection, err error) {
	for i := range w.Items {
		t.reasons = append(t.reasons, w.Reason(i))
		if w.Items[i].GUID == t.refuse {
			refused = append(refused, auction.Rejection{Key: w.Items[i].Key, Reason: "no room"})
		}
	}
	return refused, t.take(w.Items)
}

// served is how to reach it over HTTP.
func (t *taker) served(test *testing.T, maxBody int64) (*httpapi.RemoteAuctioneer, *httpapi.RemoteCell) {
	test.Helper()
	handler, err := httpapi.NewHandler(httpapi.HandlerOptions{Auctioneer: t, Cell: t, AllowPlain: true, MaxBodyBytes: maxBody})
	if err != nil {
		test.Fatal(err)
	}
	server := httptest.NewServer(handler)
	test.Cleanup(server.Close)
	o := httpapi.ClientOptions{Addresses: []string{server.URL}, CellID: "cell-1", AllowPlain: true, Attempts: 1}
	auctioneer, err := httpapi.NewRemoteAuctioneer(o)
	if err != nil {
		test.Fatal(err)
	}
	cell, err := httpapi.NewRemoteCell(o)
	if err != nil {
		test.Fatal(err)
	}
	return auctioneer, cell
}

// itemsOf are items with a tag of so many bytes each.
func itemsOf(sizes ...int) (items []auction.Item, guids []string) {
	for i, size := range sizes {
		guid := fmt.Sprint("p", i)
		items = append(items, auction.Item{Key: auction.Key{GUID: guid, Domain: "d"}, PlacementTags: []string{strings.Repeat("x", size)}})
		guids = append(guids, guid)
	}
	return items, guids
}

// Work of a definition with much in its placement tags is as large as other work is long.
func TestWorkIsSentInPiecesThatTheOtherSideTakes(t *testing.T) {
	const kib, mib = 1 << 10, 1 << 20
	for name, test := range map[string]struct {
		maxBody int64
		sizes   []int
		most    int   // calls
		large   []int // items that are too large by themselves
	}{
		"little":                           {0, slices.Repeat([]int{10}, 1000), 1, nil},
		"many":                             {0, slices.Repeat([]int{10}, 2001), 3, nil},
		"large ones":                       {0, slices.Repeat([]int{250 * kib}, 17), 6, nil},
		"one too large":                    {0, []int{10, 4*mib + 10, 10, 10}, 2, []int{1}},
		"several too large":                {0, []int{4*mib + 10, 10, 4*mib + 10}, 1, []int{0, 2}},
		"a server that takes less":         {4 * kib, slices.Repeat([]int{kib}, 10), 10, nil},
		"less, and items too large for it": {4 * kib, []int{10, 5 * kib, kib, kib, 5 * kib, 10, 10}, 5, []int{1, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			items, want := itemsOf(test.sizes...)
			for _, i := range slices.Backward(test.large) {
				want = slices.Delete(want, i, i+1)
			}
			var a taker
			auctioneer, _ := a.served(t, test.maxBody)
			err := auctioneer.Request(t.Context(), items...)
			var large *problem.TooLargeError
			if errors.As(err, &large) != (test.large != nil) || (err != nil) != (test.large != nil) {
				t.Errorf("the request: %v", err)
			}
			for _, i := range test.large {
				if says := fmt.Sprintf("lrp p%d.0 is not sent; set max_body_bytes of the auctioneer higher: ", i); err == nil || !strings.Contains(err.Error(), says) {
					t.Errorf("got %v, want %q", err, says)
				}
			}
			if !slices.Equal(a.taken, want) || a.calls > test.most {
				t.Errorf("the auctioneer got %d items in %d calls, want %d in at most %d", len(a.taken), a.calls, len(want), test.most)
			}

			c := taker{refuse: want[len(want)-1]}
			_, cell := c.served(t, test.maxBody)
			w := auction.Work{CellID: "cell-1", Items: items}
			for _, item := range items {
				w.Reasons = append(w.Reasons, "why "+item.GUID)
			}
			refused, err := cell.Perform(t.Context(), w)
			if err != nil || len(refused) != len(test.large)+1 {
				t.Fatalf("the cell refuses %d items: %v", len(refused), err)
			}
			var keys []auction.Key
			for _, r := range refused {
				if keys = append(keys, r.Key); r.Key.GUID != c.refuse && !strings.Contains(r.Reason, "it is too large to be sent to the cell: request body is larger than") {
					t.Errorf("%s is refused: %s", r.Key.GUID, r.Reason)
				}
			}
			for _, i := range test.large {
				if !slices.Contains(keys, items[i].Key) {
					t.Errorf("item %d is not refused", i)
				}
			}
			if !slices.Equal(c.taken, want) || c.calls > test.most {
				t.Errorf("the cell got %d items in %d calls, want %d in at most %d", len(c.taken), c.calls, len(want), test.most)
			}
			for i, guid := range want {
				if c.reasons[i] != "why "+guid {
					t.Fatalf("item %s came with %q", guid, c.reasons[i])
				}
			}
		})
	}
}

// What failed for another reason would fail again, and nobody knows what became of it.
func TestNothingIsSentAfterAPieceThatFailed(t *testing.T) {
	items, _ := itemsOf(slices.Repeat([]int{10}, 3000)...)
	a, c := taker{fail: 2}, taker{fail: 2}
	auctioneer, _ := a.served(t, 0)
	if err := auctioneer.Request(t.Context(), items...); err == nil || a.calls != 2 {
		t.Errorf("the auctioneer had %d calls: %v", a.calls, err)
	}
	_, cell := c.served(t, 0)
	if refused, err := cell.Perform(t.Context(), auction.Work{CellID: "cell-1", Items: items}); err == nil || refused != nil || c.calls != 2 {
		t.Errorf("the cell had %d calls: %v, %v", c.calls, refused, err)
	}
}

func TestACellIsAskedOnceForNoWork(t *testing.T) {
	var c taker
	_, cell := c.served(t, 0)
	if refused, err := cell.Perform(t.Context(), auction.Work{CellID: "cell-1"}); err != nil || refused != nil || c.calls != 1 {
		t.Errorf("%d calls: %v, %v", c.calls, refused, err)
	}
}
