package httpapi

import (
	"context"
	"errors"
	"iter"

	"github.com/diegosdk/diego/auction"
	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/internal/wire"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

// Arguments and answers of the cell's calls.
type (
	performAnswer struct {
		Rejections []auction.Rejection `json:"rejections"`
	}
	stopArgs struct {
		Key      lrp.Key         `json:"key"`
		Instance lrp.InstanceKey `json:"instance"`
	}
	cancelArgs struct {
		TaskGUID     string `json:"task_guid"`
		InstanceGUID string `json:"instance_guid"`
	}
	execAnswer struct {
		Status      int    `json:"status"`
		Signal      int    `json:"signal,omitempty"`
		OutOfMemory bool   `json:"out_of_memory,omitempty"`
		Cause       string `json:"cause,omitempty"`
	}
	cordonArgs struct {
		Cordoned bool `json:"cordoned"`
	}
)

var errNoCordoner = errors.New("this cell can neither be cordoned nor give up an evacuation: it does not implement rep.Cordoner")

// The calls of a cell.
var (
	callState = askPlain(call("State", "cell/state", planners, wire.Always,
		"Says what the cell has and has room for."), rep.API.State)
	callPerform = ask(call("Perform", "cell/perform", auctioneers, wire.Never,
		"Hands work to the cell, which answers with what it refuses."),
		func(ctx context.Context, c rep.API, in auction.Work) (a performAnswer, err error) {
			a.Rejections, err = c.Perform(ctx, in)
			return a, err
		})
	callStopLRP = tell(call("StopLRP", "cell/stop_lrp", controllers, wire.Always,
		"Asks the cell to stop an instance."),
		func(ctx context.Context, c rep.API, in stopArgs) error { return c.StopLRP(ctx, in.Key, in.Instance) })
	callCancelTaskOnCell = tell(call("CancelTask", "cell/cancel_task", controllers, wire.Always,
		"Asks the cell to delete the container of a task."),
		func(ctx context.Context, c rep.API, in cancelArgs) error {
			return c.CancelTask(ctx, in.TaskGUID, in.InstanceGUID)
		})
	callInventory = ask(call("Inventory", "cell/inventory", controllers, wire.Always,
		"Lists the containers on the cell by their instance guids, so that records without a container are given up."),
		func(ctx context.Context, c rep.API, _ wire.None) (auction.Inventory, error) {
			if c, tells := c.(auction.InventoryClient); tells {
				return c.Inventory(ctx)
			}
			return auction.Inventory{}, errors.New("this cell cannot say which containers it has; it is no auction.InventoryClient")
		})
	callEvacuate = tell(call("Evacuate", "cell/evacuate", enquirers, wire.Always,
		"Begins to empty the cell."),
		func(ctx context.Context, c rep.API, _ wire.None) error { return c.Evacuate(ctx) })
	callEvacuation = askPlain(call("Evacuation", "cell/evacuation", enquirers, wire.Always,
		"Says how far the cell is on its way to being empty."), rep.API.Evacuation)
	callCancelEvacuation = tell(call("CancelEvacuation", "cell/cancel_evacuation", enquirers, wire.Always,
		"Gives up an evacuation: what is still on the cell stays, and it takes work again."),
		func(ctx context.Context, c rep.API, _ wire.None) error {
			if c, can := c.(rep.Cordoner); can {
				return c.CancelEvacuation(ctx)
			}
			return errNoCordoner
		})
	callCordon = tell(call("Cordon", "cell/cordon", enquirers, wire.Always,
		"Keeps new work away from the cell, or lets it come again. What the cell has stays."),
		func(ctx context.Context, c rep.API, in cordonArgs) error {
			if c, can := c.(rep.Cordoner); can {
				return c.Cordon(ctx, in.Cordoned)
			}
			return errNoCordoner
		})
	callUsages = askPlain(call("Usages", "cell/usages", enquirers, wire.Always,
		"Answers with the latest measurement of each RUNNING container, ordered by guid."),
		func(c rep.API, ctx context.Context) ([]rep.ContainerUsage, error) {
			if c, can := c.(rep.Meter); can {
				return c.Usages(ctx)
			}
			return nil, errors.New("this cell cannot say what its containers use: it does not implement rep.Meter")
		})
	callContainers = askPlain(call("Containers", "cell/containers", enquirers, wire.Always,
		"Lists the containers on the cell, ordered by guid, without what runs in them (run_info): that is large and has secrets."), rep.API.Containers)
	callLogs = long(ofDomain(list(call("Logs", "cell/logs", logReaders, wire.Always,
		"Reads the output of a container, and follows it if asked. For a container that is gone, it reads the last output. A log reader reads only containers of the domains of its certificate."),
		func(ctx context.Context, c rep.API, in rep.LogRequest) iter.Seq2[rep.LogChunk, error] {
			return c.Logs(ctx, in)
		}),
		func(ctx context.Context, c rep.API, in rep.LogRequest) (string, error) {
			return domainOn(ctx, c, in.ContainerGUID)
		}))
	callExec = session(storage.SessionExec, call("Exec", "cell/exec", workers, wire.Never,
		"Runs a program in a container, as the user of the container's process, and connects the caller with it. The role exec works only in containers of the domains of its certificate."),
		func(ctx context.Context, c rep.API, in rep.ExecRequest, s executor.Streams) (execAnswer, error) {
			if c, can := c.(rep.Sessions); can {
				end, err := c.Exec(ctx, in, s)
				return execAnswer(end), err
			}
			return execAnswer{}, noSessions(in.ContainerGUID)
		},
		func(in rep.ExecRequest) (string, []string) { return in.ContainerGUID, in.Command })
	callCopyIn = session(storage.SessionCopyIn, call("CopyIn", "cell/copy_in", workers, wire.Never,
		"Unpacks the tar stream from stdin, which has one file or directory, in a container, with the rights of the user of the container's process: into the directory at the path or, if there is none, as the path."),
		func(ctx context.Context, c rep.API, in rep.CopyRequest, s executor.Streams) (wire.None, error) {
			if c, can := c.(rep.Sessions); can {
				return wire.None{}, c.CopyIn(ctx, in, s.Stdin)
			}
			return wire.None{}, noSessions(in.ContainerGUID)
		}, copied)
	callCopyOut = session(storage.SessionCopyOut, call("CopyOut", "cell/copy_out", workers, wire.Never,
		"Sends the file or directory at a path in a container as a tar stream on stdout, with the rights of the user of the container's process."),
		func(ctx context.Context, c rep.API, in rep.CopyRequest, s executor.Streams) (wire.None, error) {
			if c, can := c.(rep.Sessions); can {
				return wire.None{}, c.CopyOut(ctx, in, s.Stdout)
			}
			return wire.None{}, noSessions(in.ContainerGUID)
		}, copied)
)

func copied(in rep.CopyRequest) (string, []string) { return in.ContainerGUID, []string{in.Path} }

// session is a call in which somebody works in a container. about takes the container
// and the command or path from the arguments.
func session[In, Out any](kind string, info wire.Info, serve func(context.Context, rep.API, In, executor.Streams) (Out, error),
	about func(In) (containerGUID string, command []string)) *wire.Session[rep.API, In, Out] {
	info.Long = true
	return &wire.Session[rep.API, In, Out]{
		Info: info, Serve: serve,
		Domain: func(ctx context.Context, c rep.API, in In) (string, error) {
			containerGUID, _ := about(in)
			return domainOn(ctx, c, containerGUID)
		},
		Refused: func(ctx context.Context, c rep.API, in In, why error) {
			if c, audits := c.(rep.SessionAuditor); audits {
				containerGUID, command := about(in)
				c.Refused(ctx, containerGUID, kind, command, why)
			}
		},
	}
}

// domainOn is the domain of a container. A cell that does not know domains serves
// operators only.
func domainOn(ctx context.Context, c rep.API, containerGUID string) (string, error) {
	if c, tells := c.(rep.LogDomains); tells {
		return c.LogDomain(ctx, containerGUID)
	}
	return "", nil
}

func noSessions(containerGUID string) error {
	return &executor.SessionError{GUID: containerGUID, Why: "this cell does not support it: it does not implement rep.Sessions"}
}

var cellCalls = []wire.Endpoint[rep.API]{
	callState, callPerform, callStopLRP, callCancelTaskOnCell, callInventory, callEvacuate, callEvacuation, callCancelEvacuation, callCordon, callUsages, callContainers, callLogs,
	callExec, callCopyIn, callCopyOut,
}
