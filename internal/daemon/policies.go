package daemon

import (
	"time"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
)

// Leading are the settings of processes of which one leads, for embedding.
type Leading struct {
	Name         string        `name:"name" help:"who this process is among those that may lead; unless set, its base URL"`
	LeaderTTL    time.Duration `name:"leader_ttl" default:"15s" range:"1s..10m" help:"how long a leader that is not heard of stays the leader"`
	MaxClockSkew time.Duration `name:"max_clock_skew" default:"1m" range:"1s..24h" help:"how far the clocks of this process and its store may be apart for it to begin to lead"`
}

// Owner is the name, or url if there is none.
func (l *Leading) Owner(url string) string {
	if l.Name == "" {
		return url
	}
	return l.Name
}

// Restarts are the settings for what happens to instances, for embedding.
type Restarts struct {
	ImmediateRestarts int           `name:"immediate_restarts" default:"3" range:"-1..1000" unit:"crashes" help:"crashes after which an instance restarts at once; -1 for none"`
	MaxRestarts       int           `name:"max_restarts" default:"200" range:"-1..1000000" unit:"crashes" help:"crash count above which an instance is given up; -1 for never"`
	MinBackoff        time.Duration `name:"min_backoff" default:"30s" range:"100ms..24h" help:"the wait before a restart at a crash count of 3 or less; it doubles with every crash above, so the first wait after three immediate restarts is twice this"`
	MaxBackoff        time.Duration `name:"max_backoff" default:"16m" range:"100ms..24h" help:"the longest wait before a restart"`
	EvacuationTimeout time.Duration `name:"evacuation_timeout" default:"10m" range:"1s..24h" help:"how long the record of an instance that leaves its cell lives at most after the last word from that cell"`
	RolloutGiveUp     time.Duration `name:"rollout_give_up" default:"10m" range:"1s..24h" help:"how long a rollout waits for one index before it goes on without it"`
}

// CheckRestarts is for the Check method of settings that embed Restarts.
func (r *Restarts) CheckRestarts(report func(name, want string)) {
	if r.MinBackoff > r.MaxBackoff {
		report("min_backoff", "want at most max_backoff, which is "+r.MaxBackoff.String())
	}
}

// Policy is the policy that the settings describe.
func (r *Restarts) Policy() lrp.Policy {
	return lrp.Policy{
		EvacuationTimeout: r.EvacuationTimeout, RolloutGiveUp: r.RolloutGiveUp,
		Restart: lrp.RestartPolicy{
			ImmediateRestarts: r.ImmediateRestarts, MaxRestarts: r.MaxRestarts, MinBackoff: r.MinBackoff, MaxBackoff: r.MaxBackoff,
		},
	}
}

// Convergence are the settings of convergence, for embedding.
type Convergence struct {
	ConvergenceInterval time.Duration `name:"convergence_interval" default:"30s" range:"100ms..1h" help:"longest time from the end of a pass to the next one"`
	InventoryInterval   time.Duration `name:"inventory_interval" default:"5m" range:"1s..24h" help:"how often cells are asked which containers they have, so that records without a container are given up"`
	MaxLoss             float64       `name:"max_loss" default:"0.5" range:"0.01..1" unit:"of the cells" help:"the part of the cells that may be lost within loss_grace and be believed at once"`
	LossGrace           time.Duration `name:"loss_grace" default:"1m" range:"1ms..1h" help:"how long a cell must be gone to be believed lost if more are, and for how long a new leader believes no loss"`
	TaskLossGrace       time.Duration `name:"task_loss_grace" default:"1m" range:"1ms..24h" help:"how long a lost cell must have been gone before its tasks fail"`
}

// Guard is the guard that the settings describe.
func (c *Convergence) Guard() converge.Guard {
	return converge.Guard{MaxLoss: c.MaxLoss, Grace: c.LossGrace, TaskGrace: c.TaskLossGrace}
}

// Placing are the settings of the auctioneer, for embedding.
type Placing struct {
	StateTimeout            time.Duration `name:"state_timeout" default:"2s" range:"50ms..1m" help:"how long a cell may take to tell its state"`
	PerformTimeout          time.Duration `name:"perform_timeout" default:"10s" range:"100ms..5m" help:"how long a cell may take to answer for its work"`
	FailureHalfLife         time.Duration `name:"failure_half_life" default:"2m" range:"1s..1h" help:"how long work that a cell failed to take counts against it in full, before it counts half; a cell that only fails is left out"`
	DirectoryTimeout        time.Duration `name:"directory_timeout" default:"10s" range:"100ms..5m" help:"how long the list of cells may take"`
	ReportTimeout           time.Duration `name:"report_timeout" default:"10s" range:"100ms..5m" help:"how long one report of a failed placement may take"`
	MaxAttempts             int           `name:"max_attempts" default:"5" range:"1..1000" help:"how often a request is tried before it is left to convergence"`
	MaxStarting             int           `name:"max_starting" default:"0" range:"0..1000000" unit:"containers" help:"how many may be starting in the fleet; 0 for any number"`
	StartingContainerWeight float64       `name:"starting_container_weight" default:"0.25" range:"-1..10" help:"what each container that is starting adds to its cell's score; negative for nothing"`
	BinPackWeight           float64       `name:"bin_pack_weight" default:"0" range:"0..10" help:"what each place in the zone's order of cells adds to the score of an instance"`
}

// Auction is the policy that the settings describe.
func (p *Placing) Auction() auction.RunnerOptions {
	return auction.RunnerOptions{
		StateTimeout: p.StateTimeout, PerformTimeout: p.PerformTimeout, MaxAttempts: p.MaxAttempts,
		FailureHalfLife: p.FailureHalfLife, DirectoryTimeout: p.DirectoryTimeout, ReportTimeout: p.ReportTimeout,
		Policy: auction.Policy{
			MaxStarting: p.MaxStarting, StartingContainerWeight: p.StartingContainerWeight, BinPackWeight: p.BinPackWeight,
		},
	}
}

// Subscribing are the limits of subscriptions to events, for embedding.
type Subscribing struct {
	Heartbeat            time.Duration `name:"heartbeat" default:"5s" range:"100ms..1m" help:"how often a subscription without events says that it is alive; subscribers go elsewhere after three that did not come"`
	MaxSubscriptions     int           `name:"max_subscriptions" default:"1000" range:"1..1000000" help:"how many subscriptions to events may be open at a time"`
	MaxSubscriptionsEach int           `name:"max_subscriptions_each" default:"250" range:"1..1000000" help:"how many of them one caller may have, by the common name of its certificate"`
}

// Limit adds the limits to the options of a handler.
func (s *Subscribing) Limit(o httpapi.HandlerOptions) httpapi.HandlerOptions {
	o.Heartbeat, o.MaxSubscriptions, o.MaxSubscriptionsEach = s.Heartbeat, s.MaxSubscriptions, s.MaxSubscriptionsEach
	return o
}
