package system_test

import (
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/auction/auctioneer"
	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage/memstore"
	"github.com/diegosdk/diego/task"
)

func TestOptionsOutsideTheirLimitsAreNamed(t *testing.T) {
	store := memstore.New(nil)
	dial := func(bbs.CellPresence) (auction.CellClient, error) { return nil, nil }
	plane := func(change func(*diego.Options)) error {
		o := diego.Options{Store: store, Dial: dial, Owner: "me"}
		change(&o)
		_, err := diego.New(o)
		return err
	}
	service := func(o bbs.Options) error {
		o.Store = store
		_, err := bbs.New(o)
		return err
	}
	auctioneer := func(a auction.RunnerOptions, ttl time.Duration) error {
		b, err := bbs.New(bbs.Options{Store: store})
		if err == nil {
			_, err = auctioneer.New(auctioneer.Options{Store: store, Owner: "me", BBS: b, Dial: dial, Auction: a, LeaderTTL: ttl})
		}
		return err
	}
	client := func(o httpapi.ClientOptions) error {
		o.Addresses = []string{"https://bbs.example"}
		_, err := httpapi.NewRemoteBBS(o)
		return err
	}
	handler := func(o httpapi.HandlerOptions) error {
		b, err := bbs.New(bbs.Options{Store: store})
		if err == nil {
			o.BBS = b
			_, err = httpapi.NewHandler(o)
		}
		return err
	}
	converger := func(o converge.ConvergerOptions) error {
		o.Store, o.Effects = store, nothing{}
		_, err := converge.NewConverger(o)
		return err
	}
	restart := func(p lrp.RestartPolicy) func(*diego.Options) {
		return func(o *diego.Options) { o.LRPs.Restart = p }
	}
	for field, err := range map[string]error{
		"leader_ttl":               plane(func(o *diego.Options) { o.LeaderTTL = -time.Second }),
		"watch_interval":           plane(func(o *diego.Options) { o.WatchInterval = -1 }),
		"convergence_interval":     plane(func(o *diego.Options) { o.ConvergenceInterval = -1 }),
		"concurrency":              plane(func(o *diego.Options) { o.Concurrency = -1 }),
		"stop_timeout":             plane(func(o *diego.Options) { o.StopTimeout = -1 }),
		"max_callbacks":            plane(func(o *diego.Options) { o.MaxCallbacks = -1 }),
		"auction.directory":        plane(func(o *diego.Options) { o.Auction.Directory = bbs.NewDirectory(nil, nil) }),
		"auction.reporter":         plane(func(o *diego.Options) { o.Auction.Reporter = &bbs.BBS{} }),
		"auction.now":              plane(func(o *diego.Options) { o.Auction.Now = time.Now }),
		"auction.metrics":          plane(func(o *diego.Options) { o.Auction.Metrics = auction.NoMetrics{} }),
		"auction.logger":           plane(func(o *diego.Options) { o.Auction.Logger = slog.Default() }),
		"min_backoff":              plane(func(o *diego.Options) { o.Auction.MinBackoff = time.Minute }),
		"state_timeout":            plane(func(o *diego.Options) { o.Auction.StateTimeout = -1 }),
		"lrps.restart.min_backoff": plane(restart(lrp.RestartPolicy{MinBackoff: time.Minute, MaxBackoff: time.Second})),
		"lrps.restart.max_backoff": plane(restart(lrp.RestartPolicy{MaxBackoff: -1})),
		"lrps.restart.reset_after": plane(restart(lrp.RestartPolicy{ResetAfter: -1})),
		"lrps.stale_unclaimed":     plane(func(o *diego.Options) { o.LRPs.StaleUnclaimed = -1 }),
		"lrps.evacuation_timeout":  plane(func(o *diego.Options) { o.LRPs.EvacuationTimeout = -1 }),
		"lrps.rollout_give_up":     service(bbs.Options{LRPs: lrp.Policy{RolloutGiveUp: -1}}),
		"lrps.history":             service(bbs.Options{LRPs: lrp.Policy{History: 11}}),
		"tasks.stale_pending":      plane(func(o *diego.Options) { o.Tasks.StalePending = -1 }),
		"tasks.expire_pending":     plane(func(o *diego.Options) { o.Tasks.ExpirePending = -1 }),
		"tasks.stale_completed":    plane(func(o *diego.Options) { o.Tasks.StaleCompleted = -1 }),
		"tasks.stale_resolving":    service(bbs.Options{Tasks: task.Policy{StaleResolving: -1}}),
		"tasks.expire_completed":   converger(converge.ConvergerOptions{Tasks: task.Policy{ExpireCompleted: -1}}),
		"callbacks.min_backoff":    plane(func(o *diego.Options) { o.Callbacks.MinBackoff = time.Minute }),
		"batch_size":               service(bbs.Options{BatchSize: -1}),
		"event_tail":               service(bbs.Options{EventTail: -1}),
		"interval":                 converger(converge.ConvergerOptions{Interval: -1}),
		"leader_ttl ":              auctioneer(auction.RunnerOptions{}, -1),
		"auction.now ":             auctioneer(auction.RunnerOptions{Now: time.Now}, 0),
		"max_waiting":              auctioneer(auction.RunnerOptions{MaxWaiting: -1}, 0),
		"timeout":                  client(httpapi.ClientOptions{Timeout: -1}),
		"attempts":                 client(httpapi.ClientOptions{Attempts: -1}),
		"pause":                    client(httpapi.ClientOptions{Pause: -1}),
		"patience":                 client(httpapi.ClientOptions{Patience: -1}),
		"max_answer_bytes":         client(httpapi.ClientOptions{MaxAnswerBytes: -1}),
		"heartbeat":                handler(httpapi.HandlerOptions{Heartbeat: -1}),
		"write_timeout":            handler(httpapi.HandlerOptions{WriteTimeout: -1}),
		"max_body_bytes":           handler(httpapi.HandlerOptions{MaxBodyBytes: -1}),
		"max_body_bytes ":          handler(httpapi.HandlerOptions{MaxBodyBytes: 1<<30 + 1}),
	} {
		var invalid *executor.ValidationError
		name, _, _ := strings.Cut(field, " ")
		if !errors.As(err, &invalid) || !slices.ContainsFunc(invalid.Fields, func(f executor.FieldError) bool { return f.Field == name }) {
			t.Errorf("%s: got %v, want a *ValidationError that names it", name, err)
		}
	}
}

func TestADefaultGivesWayToWhatIsSet(t *testing.T) {
	_, err := diego.New(diego.Options{
		Store: memstore.New(nil), Dial: func(bbs.CellPresence) (auction.CellClient, error) { return nil, nil }, Owner: "me",
		LRPs:      lrp.Policy{Restart: lrp.RestartPolicy{MaxBackoff: time.Second, MaxRestarts: -1, ImmediateRestarts: -1}},
		Callbacks: task.CallbackPolicy{MaxBackoff: time.Millisecond, MaxAttempts: -1},
		Auction:   auction.RunnerOptions{MaxBackoff: time.Second, SilentPause: -1}, FullConvergenceInterval: -1,
	})
	if err != nil {
		t.Error(err)
	}
}
