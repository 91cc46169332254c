package httpapi_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/internal/testenv"
	"github.com/diegosdk/diego/rep"
)

// Anyone may ask whether a process is ready, and the answer may take a look into the
// store.
func TestAllWhoAskAtATimeWhetherAProcessIsReadyCostOneLook(t *testing.T) {
	testenv.Bubble(t, func(t *testing.T) {
		looks, answer := 0, make(chan bbs.Readiness)
		h, err := httpapi.NewHandler(httpapi.HandlerOptions{
			AllowPlain: true, Cell: struct{ rep.API }{},
			Ready: func(ctx context.Context) bbs.Readiness {
				looks++
				select {
				case r := <-answer:
					return r
				case <-ctx.Done():
					return bbs.Readiness{Why: "cut off"}
				}
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		answers := make(chan *httptest.ResponseRecorder, 10)
		ask := func(ctx context.Context) {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/readyz", nil))
			answers <- w
		}
		// The first one, who begins the look, goes away before its end.
		ctx, leave := context.WithCancel(t.Context())
		go ask(ctx)
		synctest.Wait()
		for range cap(answers) - 1 {
			go ask(t.Context())
		}
		synctest.Wait()
		leave()
		synctest.Wait()
		answer <- bbs.Readiness{Ready: true, Role: "cell"}
		for range cap(answers) {
			if w := <-answers; w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"role":"cell"`) {
				t.Errorf("the answer is %d, %s", w.Code, w.Body)
			}
		}
		if looks != 1 {
			t.Errorf("it took %d looks", looks)
		}
		go ask(t.Context())
		answer <- bbs.Readiness{Why: "standby"}
		if w := <-answers; w.Code != http.StatusServiceUnavailable || looks != 2 {
			t.Errorf("later: %d, after %d looks in all", w.Code, looks)
		}
	})
}
