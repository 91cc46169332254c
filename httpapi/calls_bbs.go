package httpapi

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/wire"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// Arguments and answers of the BBS's calls.
type (
	processArgs struct {
		ProcessGUID string `json:"process_guid"`
	}
	updateArgs struct {
		ProcessGUID string     `json:"process_guid"`
		Update      lrp.Update `json:"update"`
	}
	updateDesiredArgs struct {
		DesiredLRP lrp.DesiredLRP `json:"desired_lrp"`
		// DefinitionID names the new definition; empty for one that the BBS makes.
		DefinitionID string `json:"definition_id,omitempty"`
	}
	updateDesiredAnswer struct {
		DefinitionID string `json:"definition_id"`
	}
	rollBackArgs struct {
		ProcessGUID string `json:"process_guid"`
		// Revision is 0 for the newest one before the active one that proved healthy.
		Revision int `json:"revision,omitempty"`
	}
	definitionArgs struct {
		ProcessGUID  string `json:"process_guid"`
		DefinitionID string `json:"definition_id"`
	}
	indexArgs struct {
		ProcessGUID string `json:"process_guid"`
		Index       int    `json:"index"`
	}
	retireArgs struct {
		ProcessGUID string `json:"process_guid"`
		Index       int    `json:"index"`
		// DefinitionID is empty for the active definition.
		DefinitionID string `json:"definition_id,omitempty"`
	}
	commandArgs[C any] struct {
		ProcessGUID string `json:"process_guid"`
		Index       int    `json:"index"`
		Command     C      `json:"command"`
	}
	keepAnswer struct {
		KeepContainer bool `json:"keep_container"`
	}
	domainArgs struct {
		Domain string `json:"domain"`
		// TTL is in nanoseconds; 0 means for ever.
		TTL time.Duration `json:"ttl_nanoseconds"`
	}
	announceArgs struct {
		Presence bbs.CellPresence `json:"presence"`
		// Owner names this run of the cell.
		Owner string `json:"owner"`
		// TTL is in nanoseconds; 0 means 15 s.
		TTL time.Duration `json:"ttl_nanoseconds,omitempty"`
	}
	leaveArgs struct {
		CellID string `json:"cell_id"`
		Owner  string `json:"owner"`
	}
	taskArgs struct {
		TaskGUID string `json:"task_guid"`
	}
	taskCommandArgs[C any] struct {
		TaskGUID string `json:"task_guid"`
		Command  C      `json:"command"`
	}
	startTaskAnswer struct {
		ShouldRun bool `json:"should_run"`
	}
	failArgs struct {
		Key            lrp.Key            `json:"key"`
		PlacementError lrp.PlacementError `json:"placement_error"`
	}
	rejectArgs struct {
		TaskGUID string       `json:"task_guid"`
		Attempt  task.Attempt `json:"attempt"`
		Reason   string       `json:"reason"`
	}
	rejectAnswer struct {
		Next  task.Attempt `json:"next"`
		Again bool         `json:"again"`
	}
	sessionsArgs struct {
		CellID   string                 `json:"cell_id"`
		Sessions []storage.SessionEvent `json:"sessions"`
	}
	subscribeArgs struct {
		// After is the position to begin after: a sequence number, FromNow or
		// FromStart.
		After  storage.Cursor
		Filter storage.EventFilter
	}
)

// listBy is a list that takes a filter and nothing else.
func listBy[F, Item any](info wire.Info, method func(bbs.API, context.Context, F) iter.Seq2[Item, error]) *wire.List[bbs.API, F, Item] {
	return list(info, func(ctx context.Context, b bbs.API, f F) iter.Seq2[Item, error] { return method(b, ctx, f) })
}

// askProcess asks about a process.
func askProcess[Out any](info wire.Info, method func(bbs.API, context.Context, string) (Out, error)) *wire.Call[bbs.API, processArgs, Out] {
	return ask(info, func(ctx context.Context, b bbs.API, in processArgs) (Out, error) {
		return method(b, ctx, in.ProcessGUID)
	})
}

// askIndex asks about an index of a process.
func askIndex[Out any](info wire.Info, method func(bbs.API, context.Context, string, int) (Out, error)) *wire.Call[bbs.API, indexArgs, Out] {
	return ask(info, func(ctx context.Context, b bbs.API, in indexArgs) (Out, error) {
		return method(b, ctx, in.ProcessGUID, in.Index)
	})
}

// tellProcess says something about a process.
func tellProcess(info wire.Info, method func(bbs.API, context.Context, string) error) *wire.Call[bbs.API, processArgs, wire.None] {
	return tell(info, func(ctx context.Context, b bbs.API, in processArgs) error { return method(b, ctx, in.ProcessGUID) })
}

// tellTask says something about a task.
func tellTask(info wire.Info, method func(bbs.API, context.Context, string) error) *wire.Call[bbs.API, taskArgs, wire.None] {
	return tell(info, func(ctx context.Context, b bbs.API, in taskArgs) error { return method(b, ctx, in.TaskGUID) })
}

// report is a command of a cell about its instance; cell names the cell.
func report[C any](info wire.Info, method func(bbs.API, context.Context, string, int, C) error, cell func(C) string) *wire.Call[bbs.API, commandArgs[C], wire.None] {
	return forCell(tell(info, func(ctx context.Context, b bbs.API, in commandArgs[C]) error {
		return method(b, ctx, in.ProcessGUID, in.Index, in.Command)
	}), func(in commandArgs[C]) string { return cell(in.Command) })
}

// evacuate is a report that is answered with whether to keep the container.
func evacuate[C any](info wire.Info, method func(bbs.API, context.Context, string, int, C) (bool, error), cell func(C) string) *wire.Call[bbs.API, commandArgs[C], keepAnswer] {
	return forCell(ask(info, func(ctx context.Context, b bbs.API, in commandArgs[C]) (a keepAnswer, err error) {
		a.KeepContainer, err = method(b, ctx, in.ProcessGUID, in.Index, in.Command)
		return a, err
	}), func(in commandArgs[C]) string { return cell(in.Command) })
}

// reportTask is a command of a cell about its task; cell names the cell.
func reportTask[C any](info wire.Info, method func(bbs.API, context.Context, string, C) error, cell func(C) string) *wire.Call[bbs.API, taskCommandArgs[C], wire.None] {
	return forCell(tell(info, func(ctx context.Context, b bbs.API, in taskCommandArgs[C]) error {
		return method(b, ctx, in.TaskGUID, in.Command)
	}), func(in taskCommandArgs[C]) string { return cell(in.Command) })
}

// The calls of the BBS, each named as its method.
var (
	callDesire = tell(call("Desire", "bbs/desire", consumers, wire.Once,
		"Makes a desired LRP: a deployment with one definition."),
		func(ctx context.Context, b bbs.API, in lrp.DesiredLRP) error { return b.Desire(ctx, in) })
	callCreateDeployment = tell(call("CreateDeployment", "bbs/create_deployment", consumers, wire.Once,
		"Makes a deployment."),
		func(ctx context.Context, b bbs.API, in lrp.DeploymentDefinition) error {
			return b.CreateDeployment(ctx, in)
		})
	callUpdateDeployment = tell(call("UpdateDeployment", "bbs/update_deployment", consumers, wire.Once,
		"Changes what the update sets of a deployment or desired LRP. A new definition begins a rollout."),
		func(ctx context.Context, b bbs.API, in updateArgs) error {
			return b.UpdateDeployment(ctx, in.ProcessGUID, in.Update)
		})
	callUpdateDesiredLRP = ask(call("UpdateDesiredLRP", "bbs/update_desired_lrp", consumers, wire.Once,
		"Makes a deployment what a desired LRP says, its definition by a rollout. Answers with the id of the new definition."),
		func(ctx context.Context, b bbs.API, in updateDesiredArgs) (a updateDesiredAnswer, err error) {
			a.DefinitionID, err = b.UpdateDesiredLRP(ctx, in.DesiredLRP, in.DefinitionID)
			return a, err
		})
	callActivateDefinition = tell(call("ActivateDefinition", "bbs/activate_definition", consumers, wire.Once,
		"Begins a rollout to a definition that the deployment has."),
		func(ctx context.Context, b bbs.API, in definitionArgs) error {
			return b.ActivateDefinition(ctx, in.ProcessGUID, in.DefinitionID)
		})
	callRollBack = tell(call("RollBack", "bbs/roll_back", consumers, wire.Once,
		"Begins a rollout to the definition of an earlier revision."),
		func(ctx context.Context, b bbs.API, in rollBackArgs) error {
			return b.RollBack(ctx, in.ProcessGUID, in.Revision)
		})
	callRestartDeployment = tellProcess(call("RestartDeployment", "bbs/restart_deployment", consumers, wire.Once,
		"Replaces every instance of a process by a rollout to its definition under a new id."), bbs.API.RestartDeployment)
	callRevisions = askProcess(history(call("Revisions", "bbs/revisions", readers, wire.Always,
		"Lists the revisions of a deployment, with their definitions, the oldest first.")), bbs.API.Revisions)
	callDeleteDeployment = tellProcess(call("DeleteDeployment", "bbs/delete_deployment", consumers, wire.Once,
		"Ends a deployment or desired LRP and stops its instances."), bbs.API.DeleteDeployment)
	callPauseRollout = tellProcess(call("PauseRollout", "bbs/pause_rollout", consumers, wire.Once,
		"Keeps the rollout of a process from changing an instance until it is resumed."), bbs.API.PauseRollout)
	callResumeRollout = tellProcess(call("ResumeRollout", "bbs/resume_rollout", consumers, wire.Once,
		"Lets a paused rollout go on."), bbs.API.ResumeRollout)
	callConfirmRollout = tellProcess(call("ConfirmRollout", "bbs/confirm_rollout", consumers, wire.Once,
		"Lets a rollout go beyond its canary."), bbs.API.ConfirmRollout)
	callAbortRollout = tellProcess(call("AbortRollout", "bbs/abort_rollout", consumers, wire.Once,
		"Leads a process back to the definition from which its rollout began."), bbs.API.AbortRollout)
	callContinueRollout = tellProcess(call("ContinueRollout", "bbs/continue_rollout", operators, wire.Always,
		"Takes every step of a process's rollout that is due now."), bbs.API.ContinueRollout)
	callRolloutStatus = askProcess(call("RolloutStatus", "bbs/rollout_status", readers, wire.Always,
		"Says how far a deployment is on its way to its active definition."), bbs.API.RolloutStatus)
	callDeployments = listBy(call("Deployments", "bbs/deployments", readers, wire.Always,
		"Lists deployments, ordered by process guid."), bbs.API.Deployments)
	callDeployment = askProcess(call("Deployment", "bbs/deployment", readers, wire.Always,
		"Reads the deployment of a process."), bbs.API.Deployment)
	callDesiredLRPs = listBy(call("DesiredLRPs", "bbs/desired_lrps", readers, wire.Always,
		"Lists deployments in the form for consumers that know one definition only."), bbs.API.DesiredLRPs)
	callDesiredLRP = askProcess(call("DesiredLRP", "bbs/desired_lrp", readers, wire.Always,
		"Reads the desired LRP of a process."), bbs.API.DesiredLRP)
	callRoutingInfos = listBy(call("RoutingInfos", "bbs/routing_infos", readers, wire.Always,
		"Lists what routers need of deployments, without their definitions, ordered by process guid."), bbs.API.RoutingInfos)
	callSchedulingInfos = listBy(call("SchedulingInfos", "bbs/scheduling_infos", readers, wire.Always,
		"Lists deployments without their definitions, for consumers that compare them with what they want, ordered by process guid."), bbs.API.SchedulingInfos)

	callActualLRPs = listBy(call("ActualLRPs", "bbs/actual_lrps", readers, wire.Always,
		"Lists the records of instances: all that are at each index, ordered by process guid, index, definition and presence."), bbs.API.ActualLRPs)
	callResolvedLRPs = listBy(call("ResolvedLRPs", "bbs/resolved_lrps", readers, wire.Always,
		"Lists the instances as consumers should see them: one for each index."), bbs.API.ResolvedLRPs)
	callActualLRPGroups = listBy(call("ActualLRPGroups", "bbs/actual_lrp_groups", readers, wire.Always,
		"Lists for each definition at each index the instance and the one that leaves its cell, ordered by process guid, index and definition."), bbs.API.ActualLRPGroups)
	callActualLRPGroup = askIndex(call("ActualLRPGroup", "bbs/actual_lrp_group", readers, wire.Always,
		"Reads the group at an index of the active definition, or of all definitions if that has none."), bbs.API.ActualLRPGroup)
	callSlot = askIndex(call("Slot", "bbs/slot", readers, wire.Always,
		"Reads everything that is recorded at one index."), bbs.API.Slot)
	callRetire = tell(call("Retire", "bbs/retire", consumers, wire.Once,
		"Stops what runs at an index, which then starts again."),
		func(ctx context.Context, b bbs.API, in retireArgs) error {
			return b.Retire(ctx, in.ProcessGUID, in.Index, in.DefinitionID)
		})
	callRestartPolicy = askPlain(call("RestartPolicy", "bbs/restart_policy", readers, wire.Always,
		"Says by which policy crashed instances start again. What is absent has its default."), bbs.API.RestartPolicy)

	callUpsertDomain = tell(call("UpsertDomain", "bbs/upsert_domain", consumers, wire.Always,
		"Says that what is desired in a domain is complete, for some time or for ever."),
		func(ctx context.Context, b bbs.API, in domainArgs) error {
			return b.UpsertDomain(ctx, in.Domain, in.TTL)
		})
	callDomains = askPlain(call("Domains", "bbs/domains", readers, wire.Always,
		"Lists domains and whether they are fresh."), bbs.API.Domains)
	callCells = askPlain(call("Cells", "bbs/cells", everybody, wire.Always,
		"Lists the cells that are present, ordered by id."), bbs.API.Cells)

	callDesireTask = tell(call("DesireTask", "bbs/desire_task", consumers, wire.Once,
		"Makes a task and asks for its start."),
		func(ctx context.Context, b bbs.API, in task.Desire) error { return b.DesireTask(ctx, in) })
	callTasks = listBy(call("Tasks", "bbs/tasks", readers, wire.Always,
		"Lists tasks, ordered by guid."), bbs.API.Tasks)
	callTask = ask(call("Task", "bbs/task", readers, wire.Always,
		"Reads one task."),
		func(ctx context.Context, b bbs.API, in taskArgs) (*task.Task, error) { return b.Task(ctx, in.TaskGUID) })
	callCancelTask = tellTask(call("CancelTask", "bbs/cancel_task", consumers, wire.Once,
		"Completes a task as failed and stops its container."), bbs.API.CancelTask)
	callResolveTask = tellTask(call("ResolveTask", "bbs/resolve_task", consumers, wire.Once,
		"Says that the caller handles a completed task. It succeeds for one caller only."), bbs.API.ResolveTask)
	callDeleteTask = tellTask(call("DeleteTask", "bbs/delete_task", consumers, wire.Once,
		"Removes a task that is being resolved."), bbs.API.DeleteTask)
	callResolveAndDeleteTask = tellTask(call("ResolveAndDeleteTask", "bbs/resolve_and_delete_task", consumers, wire.Once,
		"Removes a completed task: resolves and deletes it in one step. It succeeds for one caller only."), bbs.API.ResolveAndDeleteTask)
	callFailTask = tell(call("FailTask", "bbs/fail_task", operators, wire.Once,
		"Completes a task as failed, with a reason, and stops its container."),
		func(ctx context.Context, b bbs.API, in taskCommandArgs[task.Fail]) error {
			return b.FailTask(ctx, in.TaskGUID, in.Command.Reason)
		})

	callLog = askPlain(call("Log", "bbs/log", everybody, wire.Always,
		"Says which events the log holds."), bbs.API.Log)
	callSubscribe = &wire.Feed[bbs.API, subscribeArgs, storage.Event]{
		Info:  feedInfo(),
		Query: subscribeQuery, Parse: parseSubscribe,
		Open: func(ctx context.Context, b bbs.API, in subscribeArgs) (iter.Seq2[storage.Event, error], func() int64, error) {
			// An unavailable store shows before the feed has begun.
			if _, err := b.Log(ctx); err != nil {
				return nil, nil, err
			}
			if b, tells := b.(bbs.PositionSubscriber); tells {
				events, position, err := b.SubscribeWithPosition(ctx, in.After, in.Filter)
				return events, func() int64 { return int64(position()) }, err
			}
			after, err := bbs.PositionOf(ctx, in.After, in.Filter, b.Log)
			if err != nil {
				return nil, nil, err
			}
			events, err := b.Subscribe(ctx, after, in.Filter)
			return events, func() int64 { return int64(after) }, err
		},
		Position: func(e *storage.Event) int64 { return int64(e.Sequence) },
		Kind:     func(e *storage.Event) string { return e.Subject().Kind },
	}
	callTimeline = askIndex(history(call("Timeline", "bbs/timeline", readers, wire.Always,
		"Says what happened at an index and why, as far back as the log goes. The answer leaves out the oldest events beyond about 16 MiB.")), bbs.API.Timeline)

	callAnnounce = forCell(tell(call("Announce", "bbs/announce", cells, wire.Always,
		"Makes a cell present, or renews that."),
		func(ctx context.Context, b bbs.API, in announceArgs) error {
			if err := checkReachable(in.Presence.Address); err != nil {
				return err
			}
			return b.Announce(ctx, in.Presence, in.Owner, in.TTL)
		}), func(in announceArgs) string { return in.Presence.CellID })
	callLeave = forCell(tell(call("Leave", "bbs/leave", cells, wire.Always,
		"Ends the presence of a cell at once."),
		func(ctx context.Context, b bbs.API, in leaveArgs) error { return b.Leave(ctx, in.CellID, in.Owner) }),
		func(in leaveArgs) string { return in.CellID })
	callClaimLRP = report(call("ClaimLRP", "bbs/claim_lrp", cells, wire.Always,
		"Says that the cell will start the instance. A cell that gets cannot_be_claimed deletes its reservation."),
		bbs.API.ClaimLRP, func(c lrp.Claim) string { return c.Instance.CellID })
	callStartLRP = report(call("StartLRP", "bbs/start_lrp", cells, wire.Always,
		"Says that the instance runs. A cell that gets cannot_be_started stops and deletes the container, and then calls RemoveLRP for every record that names this instance, because a rollout may have left one. Records that it does not remove are given up when the control plane next asks for the cell's Inventory."),
		bbs.API.StartLRP, func(c lrp.Start) string { return c.Instance.CellID })
	callCrashLRP = report(call("CrashLRP", "bbs/crash_lrp", cells, wire.Always,
		"Says that the instance ended unexpectedly. An instance crashes once, however often that is reported."),
		bbs.API.CrashLRP, func(c lrp.Crash) string { return c.Instance.CellID })
	callRemoveLRP = report(call("RemoveLRP", "bbs/remove_lrp", cells, wire.Once,
		"Says that the instance is gone."),
		bbs.API.RemoveLRP, func(c lrp.Remove) string { return c.Instance.CellID })
	callEvacuateClaimedLRP = evacuate(call("EvacuateClaimedLRP", "bbs/evacuate_claimed_lrp", cells, wire.Once,
		"Gives up an instance that an evacuating cell has not started."),
		bbs.API.EvacuateClaimedLRP, func(c lrp.EvacuateClaimed) string { return c.Instance.CellID })
	callEvacuateRunningLRP = evacuate(call("EvacuateRunningLRP", "bbs/evacuate_running_lrp", cells, wire.Always,
		"Asks what becomes of a running instance on an evacuating cell."),
		bbs.API.EvacuateRunningLRP, func(c lrp.EvacuateRunning) string { return c.Instance.CellID })
	callEvacuateStoppedLRP = evacuate(call("EvacuateStoppedLRP", "bbs/evacuate_stopped_lrp", cells, wire.Once,
		"Says that an instance on an evacuating cell has ended after it was told to stop."),
		bbs.API.EvacuateStoppedLRP, func(c lrp.EvacuateStopped) string { return c.Instance.CellID })
	callEvacuateCrashedLRP = evacuate(call("EvacuateCrashedLRP", "bbs/evacuate_crashed_lrp", cells, wire.Always,
		"Says that an instance on an evacuating cell crashed."),
		bbs.API.EvacuateCrashedLRP, func(c lrp.EvacuateCrashed) string { return c.Instance.CellID })
	callRemoveEvacuatingLRP = report(call("RemoveEvacuatingLRP", "bbs/remove_evacuating_lrp", cells, wire.Once,
		"Removes the instance's EVACUATING record."),
		bbs.API.RemoveEvacuatingLRP, func(c lrp.RemoveEvacuating) string { return c.Instance.CellID })
	callStartTask = forCell(ask(call("StartTask", "bbs/start_task", cells, wire.Once,
		"Asks whether the cell is to run a task in its container now."),
		func(ctx context.Context, b bbs.API, in taskCommandArgs[task.Start]) (a startTaskAnswer, err error) {
			a.ShouldRun, err = b.StartTask(ctx, in.TaskGUID, in.Command)
			return a, err
		}), func(in taskCommandArgs[task.Start]) string { return in.Command.CellID })
	callCompleteTask = reportTask(call("CompleteTask", "bbs/complete_task", cells, wire.Once,
		"Says that the container of a task has ended."),
		bbs.API.CompleteTask, func(c task.Complete) string { return c.CellID })
	callRejectStartedTask = reportTask(call("RejectStartedTask", "bbs/reject_started_task", cells, wire.Once,
		"Says that the cell has not begun the work of a task that it has."),
		bbs.API.RejectStartedTask, func(c task.Reject) string { return c.CellID })
	callReportSessions = forCell(tell(call("ReportSessions", "bbs/report_sessions", cells, wire.Once,
		"Says who has worked in containers of the cell, for the log of events."),
		func(ctx context.Context, b bbs.API, in sessionsArgs) error {
			return b.ReportSessions(ctx, in.CellID, in.Sessions)
		}), func(in sessionsArgs) string { return in.CellID })

	callFailActualLRP = tell(call("FailActualLRP", "bbs/fail_actual_lrp", auctioneers, wire.Always,
		"Records why an instance is on no cell."),
		func(ctx context.Context, b bbs.API, in failArgs) error {
			return b.FailActualLRP(ctx, in.Key, in.PlacementError)
		})
	callRejectTask = ask(call("RejectTask", "bbs/reject_task", auctioneers, wire.Once,
		"Counts an attempt to place a task that has failed, and answers with the next one."),
		func(ctx context.Context, b bbs.API, in rejectArgs) (a rejectAnswer, err error) {
			a.Next, a.Again, err = b.RejectTask(ctx, in.TaskGUID, in.Attempt, in.Reason)
			return a, err
		})

	callConverge = tell(call("Converge", "bbs/converge", operators, wire.Always,
		"Begins a pass of convergence at once."),
		func(ctx context.Context, c bbs.ConvergenceAPI, _ wire.None) error { return c.Converge(ctx) })
)

var bbsCalls = []wire.Endpoint[bbs.API]{
	callDesire, callCreateDeployment, callUpdateDeployment, callUpdateDesiredLRP, callActivateDefinition, callDeleteDeployment,
	callPauseRollout, callResumeRollout, callConfirmRollout, callAbortRollout, callRollBack, callRestartDeployment, callRevisions,
	callContinueRollout, callRolloutStatus, callDeployments, callDeployment, callDesiredLRPs, callDesiredLRP,
	callRoutingInfos, callSchedulingInfos,
	callActualLRPs, callResolvedLRPs, callActualLRPGroups, callActualLRPGroup, callSlot, callRetire, callRestartPolicy,
	callUpsertDomain, callDomains, callCells,
	callDesireTask, callTasks, callTask, callCancelTask, callResolveTask, callDeleteTask, callResolveAndDeleteTask, callFailTask,
	callLog, callSubscribe, callTimeline,
	callAnnounce, callLeave, callClaimLRP, callStartLRP, callCrashLRP, callRemoveLRP,
	callEvacuateClaimedLRP, callEvacuateRunningLRP, callEvacuateStoppedLRP, callEvacuateCrashedLRP, callRemoveEvacuatingLRP,
	callStartTask, callCompleteTask, callRejectStartedTask, callReportSessions,
	callFailActualLRP, callRejectTask,
}

var convergenceCalls = []wire.Endpoint[bbs.ConvergenceAPI]{callConverge}

func feedInfo() wire.Info {
	info := call("Subscribe", "bbs/events", readers, wire.Always,
		"Follows the log of events, as server-sent events. After a cut, Last-Event-ID goes on where the reader was.")
	info.Method, info.Long, info.Silence = "GET", true, feedSilence
	return info
}

// The query of a subscription: after is a position, "now" or "start"; the others
// are the fields of the filter; those that are lists may be repeated.
const (
	queryAfter = "after"
	queryNow   = "now"
	queryStart = "start"
)

func subscribeQuery(in subscribeArgs) url.Values {
	f := in.Filter
	q := url.Values{
		"kind": f.Kinds, "process_guid": f.ProcessGUIDs, "task_guid": f.TaskGUIDs, "cell_id": f.CellIDs, "domain": f.Domains,
	}
	for _, index := range f.Indices {
		q.Add("index", strconv.Itoa(index))
	}
	if !f.Selector.IsZero() {
		q.Set("selector", f.Selector.String())
	}
	if f.Labels {
		q.Set("labels", "true")
	}
	switch in.After {
	case bbs.FromNow:
		q.Set(queryAfter, queryNow)
	case bbs.FromStart:
		q.Set(queryAfter, queryStart)
	default:
		q.Set(queryAfter, strconv.FormatInt(int64(in.After), 10))
	}
	return q
}

func parseSubscribe(q url.Values, lastEventID string) (in subscribeArgs, err error) {
	var v executor.Validator
	in.After = bbs.FromNow
	// Alphabetical order, so that faults are always listed in the same order.
	for _, name := range slices.Sorted(maps.Keys(q)) {
		switch values := q[name]; name {
		case "kind":
			in.Filter.Kinds = values
		case "process_guid":
			in.Filter.ProcessGUIDs = values
		case "task_guid":
			in.Filter.TaskGUIDs = values
		case "cell_id":
			in.Filter.CellIDs = values
		case "domain":
			in.Filter.Domains = values
		case "index":
			for _, value := range values {
				n, err := strconv.Atoi(value)
				v.Check(err == nil, name, value, "a number")
				in.Filter.Indices = append(in.Filter.Indices, n)
			}
		case "labels":
			wants, err := strconv.ParseBool(values[len(values)-1])
			v.Check(err == nil, name, values[len(values)-1], "true or false")
			in.Filter.Labels = wants
		case "selector":
			selector, err := executor.ParseSelector(strings.Join(values, ",")) // all of them must hold
			if err != nil {
				return in, err
			}
			in.Filter.Selector = selector
		case queryAfter:
			in.After = parsePosition(&v, name, values[len(values)-1])
		default:
			v.Check(false, name, values[0], "a known parameter")
		}
	}
	if lastEventID != "" {
		in.After = parsePosition(&v, "Last-Event-ID", lastEventID)
	}
	return in, v.Err()
}

func parsePosition(v *executor.Validator, field, text string) storage.Cursor {
	switch text {
	case queryNow:
		return bbs.FromNow
	case queryStart:
		return bbs.FromStart
	}
	n, err := strconv.ParseInt(text, 10, 64)
	v.Check(err == nil && n >= 0, field, text, fmt.Sprintf("a sequence number, %q or %q", queryNow, queryStart))
	return storage.Cursor(n)
}
