// Peer opens a store and does what each line of its standard input asks for. A
// test builds it with the present release and with the one before, and lets both
// work on one database.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/storage/sqlstore"
	"github.com/diegosdk/diego/task"
)

func main() {
	ctx := context.Background()
	s, err := sqlstore.Open(ctx, os.Args[1], nil)
	if err != nil {
		fmt.Println("error", err)
		return
	}
	defer s.Close()
	fmt.Println(sqlstore.SchemaVersion)
	fmt.Println("ok")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		lines, err := do(ctx, s, strings.Fields(in.Text()))
		for _, line := range lines {
			fmt.Println(line)
		}
		if err != nil {
			fmt.Println("error", strings.ReplaceAll(err.Error(), "\n", " "))
		} else {
			fmt.Println("ok")
		}
	}
}

func do(ctx context.Context, s storage.Store, words []string) (lines []string, err error) {
	name := ""
	if len(words) > 1 {
		name = words[1]
	}
	number := func(i int) (n int) {
		if i < len(words) {
			n, _ = strconv.Atoi(words[i])
		}
		return n
	}
	switch words[0] {
	case "desire": // GUID INSTANCES
		return nil, desire(ctx, s, name, number(2))
	case "define": // GUID ID: another definition becomes active
		_, _, err := storage.ApplyDeployment(ctx, s, name, nil, func(d *lrp.Deployment) (lrp.Change, error) {
			definition := d.Definitions[d.ActiveDefinitionID]
			return d.Update(lrp.Update{DefinitionID: &words[2], Definition: &definition})
		})
		return nil, err
	case "step": // GUID INDEX create|claim|start|remove
		return nil, step(ctx, s, name, number(2), words[3])
	case "live": // GUID INDICES ROUNDS: lifecycles that others get in the way of
		for round := range number(3) {
			for index := range number(2) {
				for _, verb := range []string{"create", "claim", "start", "remove"} {
					err := step(ctx, s, name, index, verb)
					if illegal := new(lrp.TransitionError); err != nil && !errors.As(err, &illegal) {
						return nil, fmt.Errorf("round %d: %s %s/%d: %w", round, verb, name, index, err)
					}
				}
			}
		}
		return nil, nil
	case "task": // GUID
		t := &task.Task{
			GUID: name, Domain: "apps", State: task.Pending, CreatedAt: time.Now().UTC(), UpdatedAt: time.Now().UTC(), ModificationTag: executor.ModificationTag{Epoch: 1},
			Definition: task.Definition{RunInfo: runInfo()},
		}
		_, err := s.Commit(ctx, storage.Batch{Tasks: []task.Write{{After: t}}})
		return nil, err
	case "domain": // NAME
		var b storage.Batch
		b.AddDomain(name, time.Hour)
		b.RequestID = "domain " + name
		_, err := s.Commit(ctx, b)
		return nil, err
	case "acquire", "release": // OWNER EPOCH
		l := storage.Lease{Kind: storage.LeaderLease, Name: "bbs", Owner: name, Epoch: int64(number(2))}
		if words[0] == "release" {
			return nil, s.Release(ctx, l)
		}
		l, err := s.Acquire(ctx, l, time.Hour)
		return []string{strconv.FormatInt(l.Epoch, 10)}, err
	case "fenced": // NAME EPOCH: a commit that only the holder of the epoch may make
		b := storage.Batch{Fence: storage.Fence{Kind: storage.LeaderLease, Name: "bbs", Epoch: int64(number(2))}}
		b.AddDomain(name, time.Hour)
		_, err := s.Commit(ctx, b)
		return nil, err
	case "records":
		err := s.View(ctx, func(r storage.Reader) (err error) {
			lines, err = records(ctx, r)
			return err
		})
		return lines, err
	case "events":
		for e, err := range s.Events(ctx, 0, storage.EventFilter{}) {
			if err != nil {
				return lines, err
			}
			subject := e.Subject()
			lines = append(lines, fmt.Sprintf("%d %s %s/%d %s %s", e.Sequence, subject.Kind, subject.ProcessGUID, subject.Index, subject.TaskGUID, subject.Domain))
		}
		return lines, nil
	}
	return nil, fmt.Errorf("%q is none of a peer's words", words[0])
}

// records are one line each.
func records(ctx context.Context, r storage.Reader) (lines []string, err error) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for d, err := range r.Deployments(ctx, storage.DeploymentFilter{}) {
		if err != nil {
			return nil, err
		}
		add("deployment %s %s %d %s %d %+v", d.ProcessGUID, d.Domain, d.Settings.Instances, d.ActiveDefinitionID, len(d.Definitions), d.ModificationTag)
	}
	for a, err := range r.ActualLRPs(ctx, storage.ActualLRPFilter{}) {
		if err != nil {
			return nil, err
		}
		add("instance %s/%d %v %s %s %s %d %+v", a.ProcessGUID, a.Index, a.State, a.CellID, a.InstanceGUID, a.Address, a.CrashCount, a.ModificationTag)
	}
	for t, err := range r.Tasks(ctx, storage.TaskFilter{}) {
		if err != nil {
			return nil, err
		}
		add("task %s %v %s %+v", t.GUID, t.State, t.Definition.RunInfo.RootFS, t.ModificationTag)
	}
	for d, err := range r.Domains(ctx) {
		if err != nil {
			return nil, err
		}
		add("domain %s", d.Name)
	}
	for l, err := range r.Leases(ctx, storage.LeaderLease) {
		if err != nil {
			return nil, err
		}
		add("lease %s %s %d", l.Name, l.Owner, l.Epoch)
	}
	return lines, nil
}

func runInfo() executor.RunInfo {
	return executor.RunInfo{RootFS: "preloaded:linux", Action: executor.Action{Run: &executor.RunAction{Path: "/bin/web", User: "vcap"}}}
}

func desire(ctx context.Context, s storage.Store, guid string, instances int) error {
	tag := lrp.ModificationTag{Epoch: time.Now().UnixNano()}
	d := &lrp.Deployment{
		ProcessGUID: guid, Domain: "apps", Settings: lrp.Settings{Instances: instances},
		Definitions:        map[string]lrp.Definition{guid: {RunInfo: runInfo()}},
		ActiveDefinitionID: guid, HealthyDefinitionID: guid, ModificationTag: tag,
	}
	_, err := s.Commit(ctx, storage.Batch{Deployments: []storage.DeploymentWrite{{After: d}}})
	return err
}

func step(ctx context.Context, s storage.Store, guid string, index int, verb string) error {
	me := lrp.InstanceKey{InstanceGUID: fmt.Sprint("instance-", guid, index), CellID: "cell-1"}
	command, known := map[string]lrp.Command{
		"create": lrp.CreateMissing{}, "claim": lrp.Claim{Instance: me},
		"start":  lrp.Start{Instance: me, NetInfo: lrp.NetInfo{Address: "10.0.0.1", InstanceAddress: "10.255.0.1"}},
		"remove": lrp.Remove{Instance: me},
	}[verb]
	if !known {
		return fmt.Errorf("%q is not a step", verb)
	}
	_, _, err := storage.ApplySlot(ctx, s, guid, index, nil, func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
		if verb == "remove" {
			d = nil // as if the index was not desired any more
		}
		return lrp.Step(slot, d, command, time.Now(), lrp.Policy{})
	})
	return err
}
