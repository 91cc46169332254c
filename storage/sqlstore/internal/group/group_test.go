package group

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/diegosdk/diego/internal/testenv"
)

type request struct{ Ticket }

// A batch that takes long, as when the database restarts, does not make the
// next one wait long for those who do not come back.
func TestNobodyIsKeptWaitingLongForThoseWhoDoNotComeBack(t *testing.T) {
	for name, told := range map[string]bool{"told": true, "not told, as it failed": false} {
		t.Run(name, func(t *testing.T) {
			testenv.Bubble(t, func(t *testing.T) {
				g := &Group[*request]{Begin: func() error { return nil }, End: func() {}, Limit: 1, Most: 256, Gather: true}
				g.want = g.Most // from an earlier batch
				var ended time.Time
				waited := time.Duration(-1)
				g.Run = func(batch []*request) {
					if ended.IsZero() {
						time.Sleep(15 * time.Second)
						ended = time.Now()
					} else {
						waited = time.Since(ended)
					}
					if told {
						g.Telling(len(batch))
					}
					for _, r := range batch {
						r.Finish()
					}
				}
				one := func() { _ = g.Do(t.Context(), &request{NewTicket()}) }
				go one()
				synctest.Wait()
				go one()
				synctest.Wait()
				time.Sleep(time.Minute)
				synctest.Wait()
				most := time.Duration(0)
				if told {
					most = maxGather
				}
				if waited < 0 || waited > most {
					t.Errorf("the next batch began %v after the first one; want at most %v", waited, most)
				}
			})
		})
	}
}
