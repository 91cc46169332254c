package wire

import (
	"context"
	"errors"
	"io"
	"iter"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

// nobody is a network on which no server can be reached.
type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
}

func TestACallThatRunsOutOfTimeBetweenTwoRoundsSaysSo(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		c := newTestClient("http://bbs.example")
		c.o.HTTP, c.o.Pause = &http.Client{Transport: nobody{}}, time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := always.Do(ctx, c, words{}); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, ErrUnreachable) {
			t.Errorf("got %v, want the deadline and what failed before it", err)
		}
	})
}

func TestAListThatStallsIsNotBegunAgain(t *testing.T) {
	e := &echo{numbers: func(ctx context.Context) iter.Seq2[int, error] {
		return func(yield func(int, error) bool) {
			_ = yield(1, nil) && yield(2, nil)
			<-ctx.Done()
		}
	}}
	live := *count
	live.Long = true // every line goes out at once
	mux := http.NewServeMux()
	Register(newServer(), mux, e, []Endpoint[*echo]{&live})
	server := httptest.NewServer(mux)
	defer server.Close()
	c := newTestClient(server.URL)
	c.o.Timeout = time.Second // more than the items take on a busy machine
	var items []int
	var last error
	for n, err := range live.All(t.Context(), c, None{}) {
		if err != nil {
			last = err
			continue
		}
		items = append(items, n)
	}
	if len(items) != 2 || !errors.Is(last, context.DeadlineExceeded) {
		t.Errorf("got %v and then %v, want each item once and then a deadline that was missed", items, last)
	}
}

func TestAServerThatIsNotTrustedHasGotNothing(t *testing.T) {
	impostor := httptest.NewUnstartedServer(http.NotFoundHandler())
	impostor.Config.ErrorLog = log.New(io.Discard, "", 0)
	impostor.StartTLS()
	defer impostor.Close()
	leader := &echo{answer: repeatAfter}
	if _, err := never.Do(t.Context(), newTestClient(impostor.URL, serve(t, newServer(), leader).URL), words{}); err != nil {
		t.Errorf("got %v, want the call to go on past whom it was not sent to", err)
	}
}

func TestAFeedIsAskedForWithoutABody(t *testing.T) {
	lengths := make(chan int64, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		lengths <- r.ContentLength
		http.Error(w, "no", http.StatusTeapot)
	}))
	defer server.Close()
	for range follow.Follow(t.Context(), newTestClient(server.URL), 0, resumeAt) {
	}
	if n := <-lengths; n != 0 {
		t.Errorf("got a body of %d bytes", n)
	}
}

func TestAllAddressesSayWhatIsWrong(t *testing.T) {
	down, refused := errors.New("connection refused"), errors.New("unknown authority")
	err := together([]error{down, refused, errors.New("connection refused")})
	if err.Error() != "connection refused; unknown authority" || !errors.Is(err, down) || !errors.Is(err, refused) {
		t.Errorf("%v, want each reason once", err)
	}
}
