// Package metrics is the table of all metrics, with their help texts, that the
// packages of this module publish.
package metrics

import "github.com/diegosdk/diego/auction"

// A Kind is the type of a figure in Prometheus' words.
type Kind string

const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// A Metric says what a name that is given to [auction.Metrics] means.
type Metric struct {
	Name   string
	Kind   Kind
	Labels []string
	Help   string
}

// usageLabels are those of what containers use: source_id is the metrics_guid of the
// definition, or else the guid of the process or task, and instance_id the index.
// The metric tags of the process or task are labels too.
var usageLabels = []string{"source_id", "instance_id"}

// All are ordered by the part that publishes them. The table in
// docs/operations.md is this one, which a test compares.
var All = []Metric{
	{"leader", Gauge, nil, "1 while this process leads"},
	{"leader_lease_seconds", Gauge, nil, "how long this process leads if its lease is not renewed; 0 while it does not lead"},
	{"leader_lease_age_seconds", Gauge, nil, "time since this process's lease was renewed; 0 while it does not lead"},
	{"store_clock_skew_seconds", Gauge, nil, "how far the store's clock is ahead of this process's; negative if it is behind"},
	{"commit_seconds", Histogram, nil, "how long commits to the store take"},
	{"commit_conflicts_total", Counter, nil, "commits that came too late and were decided anew"},
	{"bbs_errors_total", Counter, []string{"call", "kind"}, "calls that failed, by method: refused by the rules, not the leader, or failed"},
	{"requests_total", Counter, []string{"call", "status"}, "requests for calls over HTTP that have ended, by the status of their answer; subscriptions and logs that are followed count at their end"},
	{"request_duration_seconds", Histogram, []string{"call"}, "how long requests take, until the last byte was sent; without subscriptions and logs, which last as long as their reader wants"},
	{"lrp_crashes_total", Counter, nil, "instances that have crashed, as this process has recorded it"},
	{"tasks_started_total", Counter, nil, "tasks that a cell has begun, as this process has recorded it"},
	{"tasks_succeeded_total", Counter, nil, "tasks that have completed without failure, as this process has recorded it"},
	{"tasks_failed_total", Counter, nil, "tasks that have failed or were cancelled, as this process has recorded it"},
	{"effects_lost_total", Counter, []string{"kind"}, "effects that were not carried out; convergence asks again"},
	{"callbacks_total", Counter, []string{"verdict"}, "attempts to call back"},
	{"subscriber_lag_events", Histogram, nil, "how many events a subscriber got when it read on, at most 500 and about 256 KiB"},
	{"subscriptions_open", Gauge, nil, "subscriptions over HTTP to this process; at a cell, logs that are read or followed"},
	{"calls_refused_total", Counter, nil, "calls beyond what one caller may have at a time: 1,000 calls, and 64 times `MaxBodyBytes` of arguments"},
	{"lists_cut_total", Counter, nil, "lists that were cut off because their readers were slow, and more than four were"},
	{"subscriptions_refused_total", Counter, nil, "subscriptions beyond `MaxSubscriptions` or `MaxSubscriptionsEach`"},
	{"convergence_passes_total", Counter, nil, "passes of convergence"},
	{"convergence_full_passes_total", Counter, nil, "passes that looked at everything, and not only at what had changed or was due"},
	{"convergence_pass_seconds", Histogram, nil, "how long a pass takes"},
	{"convergence_passed_at_seconds", Gauge, nil, "when the last pass ended, as Unix time"},
	{"convergence_actions_total", Counter, []string{"reason"}, "what passes found to do"},
	{"convergence_starts_total", Counter, nil, "starts that passes asked for"},
	{"convergence_errors_total", Counter, nil, "repairs that failed"},
	{"convergence_quarantined_total", Counter, nil, "records that could not be decoded"},
	{"lrps_desired", Gauge, nil, "instances that should run, at the last pass"},
	{"lrps_missing", Gauge, nil, "of these, instances at whose index nothing runs: no room, starting, or crashed"},
	{"processes_crashing", Gauge, nil, "processes that have a crashed instance which waits for its restart or gets none"},
	{"lrps", Gauge, []string{"state", "presence"}, "ActualLRPs at the last pass"},
	{"tasks", Gauge, []string{"state"}, "tasks at the last pass"},
	{"domain_fresh", Gauge, []string{"domain"}, "1 while surplus instances of the domain are stopped"},
	{"domain_expires_seconds", Gauge, []string{"domain"}, "time until the domain is not fresh any more; negative once it is not, +Inf if it is fresh for ever"},
	{"cells_present", Gauge, nil, "cells at the last pass"},
	{"records_given_up_total", Counter, nil, "instances and tasks whose cell had no container for them and had not reported that"},
	{"cells_trusted", Gauge, nil, "0 while some cell that is not present does not count as missing: too many were lost, or this process has just begun to lead"},
	{"cells_doubted", Gauge, nil, "cells whose loss is not believed yet"},
	{"auction_rounds_total", Counter, nil, "rounds of the auctioneer"},
	{"auction_round_seconds", Histogram, nil, "how long a round takes"},
	{"auction_waiting", Gauge, nil, "work that waits for a round"},
	{"auction_performed_total", Counter, nil, "work that a cell has taken"},
	{"auction_refused_total", Counter, []string{"reason"}, "work that found no cell"},
	{"auction_unknown_total", Counter, nil, "work whose cell did not answer"},
	{"auction_silent_cells", Gauge, nil, "cells that were left out of the last round"},
	{"auction_failing_cells", Gauge, nil, "of these, cells that have failed all the work they were given lately"},
	{"auction_dropped_total", Counter, nil, "work beyond MaxWaiting"},
	{"auction_reports_failed_total", Counter, nil, "failures that could not be reported"},
	{"auction_errors_total", Counter, nil, "rounds that were not begun"},
	{"rep_survey_seconds", Histogram, nil, "how long a cell takes to list its containers and records"},
	{"rep_steps_total", Counter, []string{"step", "outcome"}, "what a cell has done about containers and records: `done`, `refused` by the BBS, or `failed`"},
	{"log_lines_forwarded_total", Counter, []string{"destination"}, "lines of containers that were sent to a destination"},
	{"log_lines_dropped_total", Counter, []string{"destination"}, "lines that will not be sent: the destination was too slow, or refused them"},
	{"rep_inconceivable_total", Counter, nil, "pairs of container and record that should never be; each is in the log"},
	{"rep_containers", Gauge, []string{"state"}, "a cell's containers of LRPs and tasks"},
	{"rep_capacity", Gauge, []string{"of"}, "the size of a cell: `memory_mb`, `disk_mb`, `containers`, `pids` and the further resources by their names"},
	{"rep_capacity_remaining", Gauge, []string{"of"}, "what is not taken of that"},
	{"rep_container_creation_seconds", Histogram, []string{"outcome"}, "how long a cell takes to make a container, from its root file system to its network, without its volumes and downloads: `created` or `failed`. A download of a cached dependency or a layer that fails counts as `failed`, with the time that it took"},
	{"rep_checks_failed_total", Counter, []string{"consequence"}, "checks that have ended an instance (`unhealthy`), did not succeed in time (`never_healthy`), or have taken traffic away (`not_ready`)"},
	{"rep_volumes_waiting", Gauge, nil, "volumes of containers that are gone which could not be unmounted yet"},
	{"rep_work_taken_total", Counter, nil, "reservations that a cell has made"},
	{"rep_work_refused_total", Counter, nil, "work that a cell has refused"},
	{"rep_self_tests_total", Counter, []string{"outcome"}, "self-tests of a cell: `succeeded` or `failed`"},
	{"rep_unhealthy", Gauge, nil, "1 while the self-test keeps a cell out of auctions"},
	{"rep_cordoned", Gauge, nil, "1 while a cell is cordoned"},
	{"rep_evacuating", Gauge, nil, "1 while a cell evacuates"},
	{"rep_announce_failures_total", Counter, nil, "times that a cell could not renew its presence"},
	{"container_cpu_seconds_total", Counter, usageLabels, "processor time of a container"},
	{"container_memory_bytes", Gauge, usageLabels, "memory that a container uses"},
	{"container_memory_limit_bytes", Gauge, usageLabels, "memory that a container may use, if there is a limit"},
	{"container_disk_bytes", Gauge, usageLabels, "disk that a container uses"},
	{"container_disk_limit_bytes", Gauge, usageLabels, "disk that a container may use, if there is a limit"},
	{"container_pids", Gauge, usageLabels, "processes and threads of a container"},
	{"container_received_bytes_total", Counter, usageLabels, "what a container with a network of its own has received"},
	{"container_sent_bytes_total", Counter, usageLabels, "what a container with a network of its own has sent"},
	{"metrics_dropped_total", Counter, []string{"name"}, "figures that Prometheus was given and did not keep: too many series of the name, or its type changed"},
}

// leadersGauges are those that only a leader knows.
var leadersGauges = []string{"convergence_passed_at_seconds", "lrps_desired", "lrps_missing", "processes_crashing", "lrps", "tasks", "domain_fresh", "domain_expires_seconds", "cells_present", "cells_trusted", "cells_doubted", "auction_waiting", "auction_silent_cells", "auction_failing_cells"}

// ForgetLeading removes from m the gauges that only a leader knows. A process calls it
// when it stops leading.
func ForgetLeading(m auction.Metrics) {
	if f, ok := m.(auction.Forgetter); ok {
		f.Forget(leadersGauges...)
	}
}

// Help is the help text of a metric, or "" for one of a caller's own.
func Help(name string) string {
	for _, f := range All {
		if f.Name == name {
			return f.Help
		}
	}
	return ""
}
