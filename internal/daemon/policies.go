package daemon

import (
	"time"

	"github.com/diegosdk/diego"
	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/converge"
	"github.com/diegosdk/diego/httpapi"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/task"
)

// Leading are the settings of processes of which one leads, for embedding.
type Leading struct {
	Name         string        `name:"name" option:"diego.Options.Owner auctioneer.Options.Owner,by hand" help:"who this process is among those that may lead; unless set, its base URL"`
	LeaderTTL    time.Duration `name:"leader_ttl" option:"diego.Options.LeaderTTL auctioneer.Options.LeaderTTL,by hand" default:"15s" range:"1s..10m" help:"how long a leader stays the leader without renewing its lease"`
	MaxClockSkew time.Duration `name:"max_clock_skew" option:"diego.Options.MaxClockSkew auctioneer.Options.MaxClockSkew,by hand" default:"1m" range:"1s..24h" help:"how far the clocks of this process and its store may be apart for it to begin to lead"`
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
	ImmediateRestarts int           `name:"immediate_restarts" option:"lrp.RestartPolicy.ImmediateRestarts,by hand" default:"3" range:"-1..1000" unit:"crashes" help:"crashes after which an instance restarts at once; 0 or -1 for none"`
	MaxRestarts       int           `name:"max_restarts" option:"lrp.RestartPolicy.MaxRestarts" default:"200" range:"-1..1000000" unit:"crashes" help:"crash count above which an instance is given up; -1 for never; 0 is refused"`
	MinBackoff        time.Duration `name:"min_backoff" option:"lrp.RestartPolicy.MinBackoff" default:"30s" range:"100ms..24h" help:"the wait before a restart at a crash count of 3 or less; it doubles with every crash above, so the first wait after three immediate restarts is twice this"`
	MaxBackoff        time.Duration `name:"max_backoff" option:"lrp.RestartPolicy.MaxBackoff" default:"16m" range:"100ms..24h" help:"the longest wait before a restart"`
	EvacuationTimeout time.Duration `name:"evacuation_timeout" option:"lrp.Policy.EvacuationTimeout" default:"10m" range:"1s..24h" help:"how long the record of an instance that leaves its cell lives after that cell last asked about it, at most"`
	ResetAfter        time.Duration `name:"reset_after" option:"lrp.RestartPolicy.ResetAfter" default:"5m" range:"1s..24h" help:"how long an instance must have been RUNNING for its next crash to count from 0"`
	StaleUnclaimed    time.Duration `name:"stale_unclaimed" option:"lrp.Policy.StaleUnclaimed" default:"30s" range:"1s..24h" help:"how long an instance waits for a cell until it is requested again"`
	RolloutGiveUp     time.Duration `name:"rollout_give_up" option:"lrp.Policy.RolloutGiveUp" default:"10m" range:"1s..24h" help:"how long a rollout waits for one index before it goes on without it"`
	History           int           `name:"history" option:"lrp.Policy.History,by hand" default:"5" range:"0..10" unit:"revisions" help:"revisions before the active one that a deployment keeps, with their definitions"`
}

// CheckRestarts is for the Check method of settings that embed Restarts.
func (r *Restarts) CheckRestarts(report func(name, want string)) {
	if r.MaxRestarts == 0 {
		report("max_restarts", "want -1 or at least 1: a policy reads 0 as its default, and a first crash always counts 1; for the fewest restarts, set it to 1 and immediate_restarts to 0")
	}
	if r.MinBackoff > r.MaxBackoff {
		report("min_backoff", "want at most max_backoff, which is "+r.MaxBackoff.String())
	}
}

// Policy is the policy that the settings describe.
func (r *Restarts) Policy() (p lrp.Policy) {
	apply(r, &p, &p.Restart)
	if p.Restart.ImmediateRestarts = r.ImmediateRestarts; r.ImmediateRestarts == 0 {
		p.Restart.ImmediateRestarts = -1 // 0 would be the default
	}
	if p.History = r.History; r.History == 0 {
		p.History = -1
	}
	return p
}

// Convergence are the settings of convergence, for embedding.
type Convergence struct {
	ConvergenceInterval     time.Duration `name:"convergence_interval" option:"diego.Options.ConvergenceInterval" default:"30s" range:"100ms..1h" help:"longest time from the end of a pass to the next one"`
	FullConvergenceInterval time.Duration `name:"full_convergence_interval" option:"diego.Options.FullConvergenceInterval" default:"5m" range:"1s..24h" help:"how long passes rely on the log of events before one looks at everything again"`
	WatchInterval           time.Duration `name:"watch_interval" option:"diego.Options.WatchInterval" default:"1s" range:"50ms..1m" help:"how often the list of present cells is checked"`
	Concurrency             int           `name:"concurrency" option:"diego.Options.Concurrency" default:"0" range:"0..100000" help:"how many cells are asked, slots repaired and callbacks made at a time; 0 for what suits each of them"`
	StopTimeout             time.Duration `name:"stop_timeout" option:"diego.Options.StopTimeout" default:"10s" range:"100ms..5m" help:"how long a cell may take to confirm a stop or to list its containers, and an auctioneer to confirm a request"`
	InventoryInterval       time.Duration `name:"inventory_interval" option:"diego.Options.InventoryInterval" default:"5m" range:"1s..24h" help:"how often cells are asked which containers they have, so that records without a container are given up"`
	MaxLoss                 float64       `name:"max_loss" option:"converge.Guard.MaxLoss" default:"0.5" range:"0.01..1" unit:"of the cells" help:"the share of the cells that may be lost within loss_grace and be believed at once"`
	LossGrace               time.Duration `name:"loss_grace" option:"converge.Guard.Grace" default:"1m" range:"1ms..1h" help:"how long a cell must be gone to be believed lost if more are, and for how long a new leader believes no loss"`
	TaskLossGrace           time.Duration `name:"task_loss_grace" option:"converge.Guard.TaskGrace" default:"1m" range:"1ms..24h" help:"how long a lost cell must have been gone before its tasks fail"`
}

// Guard is the guard that the settings describe.
func (c *Convergence) Guard() (g converge.Guard) {
	apply(c, &g)
	return g
}

// PlaneOptions are the options of a control plane that the settings describe.
func PlaneOptions(c *Convergence, r *Restarts, t *Tasks, p *Placing) diego.Options {
	o := diego.Options{LRPs: r.Policy(), Tasks: t.TaskPolicy(), Callbacks: t.CallbackPolicy(), Guard: c.Guard(), Auction: p.Auction()}
	apply(c, &o)
	apply(t, &o)
	return o
}

// Tasks are the settings for tasks and their callbacks, for embedding.
type Tasks struct {
	TaskMaxRetries      int           `name:"task_max_retries" option:"task.Policy.MaxRetries,by hand" default:"3" range:"0..1000000" help:"how often a rejected task is tried again"`
	TaskStalePending    time.Duration `name:"task_stale_pending" option:"task.Policy.StalePending" default:"30s" range:"1s..24h" help:"how long a task is PENDING before its start is requested again"`
	TaskExpirePending   time.Duration `name:"task_expire_pending" option:"task.Policy.ExpirePending" default:"30m" range:"1s..8760h" help:"how long after its creation a task that is still PENDING fails"`
	TaskStaleCompleted  time.Duration `name:"task_stale_completed" option:"task.Policy.StaleCompleted" default:"30s" range:"1s..24h" help:"how long a task is COMPLETED before its callback is requested again"`
	TaskStaleResolving  time.Duration `name:"task_stale_resolving" option:"task.Policy.StaleResolving" default:"30s" range:"1s..24h" help:"how long a task is RESOLVING before it is COMPLETED again; less than all attempts of a callback take makes slow callbacks twice"`
	TaskExpireCompleted time.Duration `name:"task_expire_completed" option:"task.Policy.ExpireCompleted" default:"2m" range:"1s..8760h" help:"how long after its end a task is removed, whether or not anyone has seen it"`

	CallbackAttempts   int           `name:"callback_attempts" option:"task.CallbackPolicy.MaxAttempts" default:"3" range:"1..1000" help:"how often a callback is tried in a row"`
	CallbackTimeout    time.Duration `name:"callback_timeout" option:"task.CallbackPolicy.Timeout" default:"8s" range:"100ms..10m" help:"how long one attempt may take"`
	CallbackMinBackoff time.Duration `name:"callback_min_backoff" option:"task.CallbackPolicy.MinBackoff" default:"1s" range:"1ms..10m" help:"the wait after the first attempt; it doubles with every attempt"`
	CallbackMaxBackoff time.Duration `name:"callback_max_backoff" option:"task.CallbackPolicy.MaxBackoff" default:"4s" range:"1ms..10m" help:"the longest wait between two attempts"`
	MaxCallbacks       int           `name:"max_callbacks" option:"diego.Options.MaxCallbacks" default:"10000" range:"1..10000000" help:"how many callbacks may wait; convergence requests the rest again"`
}

// CheckTasks is for the Check method of settings that embed Tasks.
func (s *Tasks) CheckTasks(report func(name, want string)) {
	if s.CallbackMinBackoff > s.CallbackMaxBackoff {
		report("callback_min_backoff", "want at most callback_max_backoff, which is "+s.CallbackMaxBackoff.String())
	}
	if most := s.CallbackPolicy().Longest(); s.TaskStaleResolving < most {
		report("task_stale_resolving", "want at least "+most.String()+", which is how long all attempts of a callback may take")
	}
}

// TaskPolicy is the policy of tasks that the settings describe.
func (s *Tasks) TaskPolicy() (p task.Policy) {
	apply(s, &p)
	if p.MaxRetries = s.TaskMaxRetries; s.TaskMaxRetries == 0 {
		p.MaxRetries = -1 // 0 would be the default
	}
	return p
}

// CallbackPolicy is the policy of callbacks that the settings describe.
func (s *Tasks) CallbackPolicy() (p task.CallbackPolicy) {
	apply(s, &p)
	return p
}

// Placing are the settings of the auctioneer, for embedding.
type Placing struct {
	StateTimeout            time.Duration `name:"state_timeout" option:"auction.RunnerOptions.StateTimeout" default:"2s" range:"50ms..1m" help:"how long a cell may take to report its state"`
	PerformTimeout          time.Duration `name:"perform_timeout" option:"auction.RunnerOptions.PerformTimeout" default:"10s" range:"100ms..5m" help:"how long a cell may take to answer for its work"`
	FailureHalfLife         time.Duration `name:"failure_half_life" option:"auction.RunnerOptions.FailureHalfLife" default:"2m" range:"1s..1h" help:"how long work that a cell failed to take counts against it in full, before it counts half; a cell that only fails is left out"`
	DirectoryTimeout        time.Duration `name:"directory_timeout" option:"auction.RunnerOptions.DirectoryTimeout" default:"10s" range:"100ms..5m" help:"how long the list of cells may take"`
	ReportTimeout           time.Duration `name:"report_timeout" option:"auction.RunnerOptions.ReportTimeout" default:"10s" range:"100ms..5m" help:"how long one report of a failed placement may take"`
	SilentPause             time.Duration `name:"silent_pause" option:"auction.RunnerOptions.SilentPause" default:"30s" range:"1s..1h" help:"how long at most a cell that did not answer is not asked again"`
	PlaceConcurrency        int           `name:"place_concurrency" option:"auction.RunnerOptions.Concurrency" default:"256" range:"1..100000" help:"how many cells are asked, and reports made, at a time"`
	PlaceMinBackoff         time.Duration `name:"place_min_backoff" option:"auction.RunnerOptions.MinBackoff" default:"5s" range:"10ms..1h" help:"the wait before refused work is tried again; it doubles with every attempt"`
	PlaceMaxBackoff         time.Duration `name:"place_max_backoff" option:"auction.RunnerOptions.MaxBackoff" default:"30s" range:"10ms..1h" help:"the longest such wait"`
	MaxWaiting              int           `name:"max_waiting" option:"auction.RunnerOptions.MaxWaiting" default:"1000000" range:"1..100000000" help:"how much work may wait for a cell; convergence requests the rest again"`
	MaxAttempts             int           `name:"max_attempts" option:"auction.RunnerOptions.MaxAttempts" default:"5" range:"1..1000" help:"how often a request is tried before it is left to convergence"`
	MaxStarting             int           `name:"max_starting" option:"auction.Policy.MaxStarting" default:"0" range:"0..1000000" unit:"containers" help:"how many may be starting in the fleet; 0 for any number"`
	StartingContainerWeight float64       `name:"starting_container_weight" option:"auction.Policy.StartingContainerWeight,by hand" default:"0.25" range:"-1..10" help:"what each container that is starting adds to its cell's score; 0 or negative for nothing"`
	BinPackWeight           float64       `name:"bin_pack_weight" option:"auction.Policy.BinPackWeight" default:"0" range:"0..10" help:"what each place in the zone's order of cells adds to the score of an instance"`
}

// CheckPlacing is for the Check method of settings that embed Placing.
func (p *Placing) CheckPlacing(report func(name, want string)) {
	if p.PlaceMinBackoff > p.PlaceMaxBackoff {
		report("place_min_backoff", "want at most place_max_backoff, which is "+p.PlaceMaxBackoff.String())
	}
}

// Auction is the options that the settings describe.
func (p *Placing) Auction() (o auction.RunnerOptions) {
	apply(p, &o, &o.Policy)
	if o.Policy.StartingContainerWeight = p.StartingContainerWeight; p.StartingContainerWeight == 0 {
		o.Policy.StartingContainerWeight = -1 // 0 would be the default
	}
	return o
}

// Subscribing are the settings of subscriptions to events, for embedding.
type Subscribing struct {
	Heartbeat time.Duration `name:"heartbeat" option:"httpapi.HandlerOptions.Heartbeat" default:"5s" range:"100ms..1m" help:"how often a subscription without events says that it is alive; subscribers go elsewhere after three missing ones"`
	Readers
}

// Limit adds the settings to the options of a handler.
func (s *Subscribing) Limit(o httpapi.HandlerOptions) httpapi.HandlerOptions {
	apply(s, &o)
	return o
}

// Readers are the limits of answers that go on until their reader has enough,
// for embedding: subscriptions to events at a control plane, and logs that are
// read or followed at a cell.
type Readers struct {
	MaxSubscriptions     int `name:"max_subscriptions" option:"httpapi.HandlerOptions.MaxSubscriptions" default:"1000" range:"1..1000000" help:"how many subscriptions, or at a cell logs, may be open at a time"`
	MaxSubscriptionsEach int `name:"max_subscriptions_each" option:"httpapi.HandlerOptions.MaxSubscriptionsEach" default:"250" range:"1..1000000" help:"how many of them one name of a certificate may have"`
}

// Limit adds the limits to the options of a handler.
func (r *Readers) Limit(o httpapi.HandlerOptions) httpapi.HandlerOptions {
	apply(r, &o)
	return o
}
