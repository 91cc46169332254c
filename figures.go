package diego

// A figureKind is the type of a figure in Prometheus' words.
type figureKind string

const (
	counter   figureKind = "counter"
	gauge     figureKind = "gauge"
	histogram figureKind = "histogram"
)

// A figure says what a name that is given to [Metrics] means.
type figure struct {
	name   string
	kind   figureKind
	labels []string
	help   string
}

// figures are all that the packages of this module publish. The table in
// docs/operations.md is this one, which a test compares.
var figures = []figure{
	{"leader", gauge, nil, "1 while this process leads"},
	{"leader_lease_seconds", gauge, nil, "how long this process leads if its lease is not renewed; 0 while it does not lead"},
	{"leader_lease_age_seconds", gauge, nil, "time since this process's lease was renewed; 0 while it does not lead"},
	{"store_clock_skew_seconds", gauge, nil, "how far the store's clock is ahead of this process's; negative if it is behind"},
	{"commit_seconds", histogram, nil, "how long commits to the store take"},
	{"commit_conflicts_total", counter, nil, "commits that came too late and were decided anew"},
	{"bbs_errors_total", counter, []string{"call", "kind"}, "calls that failed: refused by the rules, not the leader, or failed"},
	{"effects_lost_total", counter, []string{"kind"}, "effects that were not carried out; convergence asks again"},
	{"callbacks_total", counter, []string{"verdict"}, "attempts to call back"},
	{"subscriber_lag_events", histogram, nil, "how many events a subscriber got when it read on, up to 500 if it reads from the store"},
	{"subscriptions_open", gauge, nil, "subscriptions over HTTP to this process"},
	{"subscriptions_refused_total", counter, nil, "subscriptions beyond `MaxSubscriptions` or `MaxSubscriptionsEach`"},
	{"convergence_passes_total", counter, nil, "passes of convergence"},
	{"convergence_full_passes_total", counter, nil, "passes that looked at everything, and not only at what had changed or was due"},
	{"convergence_pass_seconds", histogram, nil, "how long a pass takes"},
	{"convergence_actions_total", counter, []string{"reason"}, "what passes found to do"},
	{"convergence_starts_total", counter, nil, "starts that passes asked for"},
	{"convergence_errors_total", counter, nil, "what could not be mended"},
	{"convergence_quarantined_total", counter, nil, "records that could not be decoded"},
	{"lrps", gauge, []string{"state", "presence"}, "ActualLRPs at the last pass"},
	{"tasks", gauge, []string{"state"}, "tasks at the last pass"},
	{"domain_fresh", gauge, []string{"domain"}, "1 while surplus instances of the domain are stopped"},
	{"cells_present", gauge, nil, "cells at the last pass"},
	{"records_given_up_total", counter, nil, "instances and tasks whose cell had no container for them and did not say so"},
	{"cells_trusted", gauge, nil, "0 while some cell that is not present does not count as missing: too many were lost, or this process has just begun to lead"},
	{"cells_doubted", gauge, nil, "cells whose loss is not believed yet"},
	{"auction_rounds_total", counter, nil, "rounds of the auctioneer"},
	{"auction_round_seconds", histogram, nil, "how long a round takes"},
	{"auction_waiting", gauge, nil, "work that waits for a round"},
	{"auction_performed_total", counter, nil, "work that a cell has taken"},
	{"auction_refused_total", counter, []string{"reason"}, "work that found no cell"},
	{"auction_unknown_total", counter, nil, "work whose cell did not answer"},
	{"auction_silent_cells", gauge, nil, "cells that were left out of the last round"},
	{"auction_failing_cells", gauge, nil, "of these, cells that have failed all the work they were given lately"},
	{"auction_dropped_total", counter, nil, "work beyond MaxWaiting"},
	{"auction_reports_failed_total", counter, nil, "failures that could not be reported"},
	{"auction_errors_total", counter, nil, "rounds that were not begun"},
	{"rep_survey_seconds", histogram, nil, "how long a cell takes to list its containers and records"},
	{"rep_steps_total", counter, []string{"step", "outcome"}, "what a cell has done about containers and records: `done`, `refused` by the BBS, or `failed`"},
	{"rep_inconceivable_total", counter, nil, "pairs of container and record that should never be; each is in the log"},
	{"rep_containers", gauge, []string{"state"}, "a cell's containers of LRPs and tasks"},
	{"rep_capacity_total", gauge, []string{"of"}, "the size of a cell: `memory_mb`, `disk_mb`, `containers`, `pids`"},
	{"rep_capacity_remaining", gauge, []string{"of"}, "what is not taken of that"},
	{"rep_work_taken_total", counter, nil, "reservations that a cell has made"},
	{"rep_work_refused_total", counter, nil, "work that a cell has refused"},
	{"rep_self_tests_total", counter, []string{"outcome"}, "self-tests of a cell: `succeeded` or `failed`"},
	{"rep_unhealthy", gauge, nil, "1 while the self-test keeps a cell out of auctions"},
	{"rep_evacuating", gauge, nil, "1 once a cell evacuates"},
	{"rep_announce_failures_total", counter, nil, "times that a cell could not renew its presence"},
	{"metrics_dropped_total", counter, []string{"name"}, "figures that Prometheus was given and did not keep: too many series of the name, or its type changed"},
}

// leadersGauges are those that only a leader knows.
var leadersGauges = []string{"lrps", "tasks", "domain_fresh", "cells_present", "cells_trusted", "cells_doubted", "auction_waiting", "auction_silent_cells", "auction_failing_cells"}

// A Forgetter is a [Metrics] that can drop figures. A process that stops leading
// has it forget the gauges that only a leader knows: what they said last would
// otherwise stand beside what the next leader says.
type Forgetter interface {
	// Forget drops all values of these gauges until they are given anew.
	Forget(names ...string)
}

var _ Forgetter = (*Prometheus)(nil)

// forgetLeading is for whoever leads no longer.
func forgetLeading(m Metrics) {
	if f, ok := m.(Forgetter); ok {
		f.Forget(leadersGauges...)
	}
}

// helpOf is what the figure of that name tells, or "" for a caller's own.
func helpOf(name string) string {
	for _, f := range figures {
		if f.name == name {
			return f.help
		}
	}
	return ""
}
