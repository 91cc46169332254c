package bbs

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"iter"
	"slices"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
)

// Desire makes a desired LRP: a deployment with one definition (002 §Creating a
// DesiredLRP). The error wraps storage.ErrExists if the process has a
// deployment.
func (b *BBS) Desire(ctx context.Context, l lrp.DesiredLRP) error {
	change, err := lrp.CreateFrom(l, b.o.Now())
	return b.create(ctx, "Desire", change, err)
}

// CreateDeployment makes a deployment (003 §CreateLRPDeployment). The error
// wraps storage.ErrExists if the process has one.
func (b *BBS) CreateDeployment(ctx context.Context, c lrp.DeploymentDefinition) error {
	change, err := lrp.Create(c, b.o.Now())
	return b.create(ctx, "CreateDeployment", change, err)
}

func (b *BBS) create(ctx context.Context, method string, change lrp.Change, err error) error {
	if err != nil {
		return b.answer(method, err)
	}
	return b.changeDeployment(ctx, method, change.After.ProcessGUID, func(d *lrp.Deployment) (lrp.Change, error) {
		if d != nil {
			return lrp.Change{}, &storage.ExistsError{Key: storage.DeploymentKey(d.ProcessGUID)}
		}
		return change, nil
	})
}

// UpdateDeployment applies u to a deployment, even to one that was made as a
// desired LRP (002 §Updating DesiredLRPs, 003 §UpdateLRPDeployment). A smaller
// number of instances takes effect at once, even if the domain is not fresh; a
// new definition begins a rollout. The error wraps storage.ErrNotFound, or
// lrp.ErrRefused.
func (b *BBS) UpdateDeployment(ctx context.Context, processGUID string, u lrp.Update) error {
	return b.changeDeployment(ctx, "UpdateDeployment", processGUID, existing(processGUID, func(d *lrp.Deployment) (lrp.Change, error) {
		return d.Update(u)
	}))
}

// UpdateDesiredLRP makes a deployment equal to l (004 §Proposed API): its
// settings at once, and its definition by a rollout, under definitionID or, if
// that is empty, a new id. It returns the id. l must have the deployment's
// process guid, domain and update strategy. To change settings without a
// rollout, use UpdateDeployment. The error wraps storage.ErrNotFound, or
// lrp.ErrRefused.
func (b *BBS) UpdateDesiredLRP(ctx context.Context, l lrp.DesiredLRP, definitionID string) (string, error) {
	const method = "UpdateDesiredLRP"
	if err := l.Validate(); err != nil {
		return "", b.answer(method, err)
	}
	if definitionID == "" {
		definitionID = newDefinitionID(requestID(ctx, method))
	}
	err := b.changeDeployment(ctx, method, l.ProcessGUID, existing(l.ProcessGUID, func(d *lrp.Deployment) (lrp.Change, error) {
		return d.UpdateTo(l, definitionID)
	}))
	if err != nil {
		return "", err
	}
	return definitionID, nil
}

// newDefinitionID makes an unused id. A call that is repeated under its request
// id gets the same one.
func newDefinitionID(requestID string) string {
	if requestID == "" {
		return rand.Text()
	}
	sum := sha256.Sum256([]byte(requestID))
	return hex.EncodeToString(sum[:16])
}

// ActivateDefinition begins a rollout to an existing definition (003
// §ActivateLRPDeploymentDefinition).
func (b *BBS) ActivateDefinition(ctx context.Context, processGUID, definitionID string) error {
	return b.changeDeployment(ctx, "ActivateDefinition", processGUID, existing(processGUID, func(d *lrp.Deployment) (lrp.Change, error) {
		return d.Activate(definitionID, b.o.Now())
	}))
}

// RollBack begins a rollout to the definition of an earlier revision, or, with
// 0, of the newest one before the active one that proved healthy: see
// [lrp.Deployment.RollBack]. The error wraps storage.ErrNotFound, or
// lrp.ErrRefused if there is none.
func (b *BBS) RollBack(ctx context.Context, processGUID string, revision int) error {
	return b.changeDeployment(ctx, "RollBack", processGUID, existing(processGUID, func(d *lrp.Deployment) (lrp.Change, error) {
		return d.RollBack(revision, b.o.Now())
	}))
}

// RestartDeployment replaces every instance of a process by a new one, as its
// policies say: it begins a rollout to the active definition under a new id, see
// [lrp.Deployment.RestartAll]. The error wraps storage.ErrNotFound, or
// lrp.ErrRefused if the process has too many definitions.
func (b *BBS) RestartDeployment(ctx context.Context, processGUID string) error {
	return b.changeDeployment(ctx, "RestartDeployment", processGUID, existing(processGUID, (*lrp.Deployment).RestartAll))
}

// Revisions is the history of a deployment, the oldest revision first, each with
// its definition. The last one is the active one, and says how far its rollout is
// by now and which failure has paused it, if one has. The error wraps
// storage.ErrNotFound if there is no deployment.
func (b *BBS) Revisions(ctx context.Context, processGUID string) (list []lrp.Revision, err error) {
	err = b.o.Store.View(ctx, func(r storage.Reader) error {
		d, err := r.Deployment(ctx, processGUID)
		if err != nil {
			return err
		}
		list = slices.Clone(d.History())
		definition, last := d.Definitions[d.ActiveDefinitionID], &list[len(list)-1]
		last.Definition, last.Desired, last.Healthy = &definition, d.Instances, d.HealthyDefinitionID == d.ActiveDefinitionID
		if d.RolloutState.Paused == lrp.PausedByFailure {
			last.Failure = d.RolloutState.Failure
		}
		last.Done, err = storage.RolledOut(ctx, r, d, b.o.Now())
		return err
	})
	return list, err
}

// DeleteDeployment ends a deployment or desired LRP. Its instances stop at
// once, even if the domain is not fresh. The error wraps storage.ErrNotFound.
func (b *BBS) DeleteDeployment(ctx context.Context, processGUID string) error {
	return b.changeDeployment(ctx, "DeleteDeployment", processGUID, existing(processGUID, func(d *lrp.Deployment) (lrp.Change, error) {
		return d.Delete(), nil
	}))
}

// PauseRollout keeps the rollout of a process from changing an index: see
// [lrp.Deployment.PauseRollout]. Instances that crash or get lost start again
// meanwhile, from the healthy definition. The error wraps storage.ErrNotFound,
// or lrp.ErrRefused if no rollout is under way.
func (b *BBS) PauseRollout(ctx context.Context, processGUID string) error {
	return b.changeDeployment(ctx, "PauseRollout", processGUID, existing(processGUID, (*lrp.Deployment).PauseRollout))
}

// ResumeRollout lets a paused rollout go on: see
// [lrp.Deployment.ResumeRollout]. It fails like [BBS.PauseRollout].
func (b *BBS) ResumeRollout(ctx context.Context, processGUID string) error {
	return b.changeDeployment(ctx, "ResumeRollout", processGUID, existing(processGUID, func(d *lrp.Deployment) (lrp.Change, error) {
		return d.ResumeRollout(b.o.Now())
	}))
}

// ConfirmRollout lets a rollout go beyond its canary: see
// [lrp.Deployment.ConfirmRollout]. It fails like [BBS.PauseRollout]; the error
// also wraps lrp.ErrRefused if the rollout has no canary.
func (b *BBS) ConfirmRollout(ctx context.Context, processGUID string) error {
	return b.changeDeployment(ctx, "ConfirmRollout", processGUID, existing(processGUID, (*lrp.Deployment).ConfirmRollout))
}

// AbortRollout leads a process back to the definition from which its rollout
// began: see [lrp.Deployment.AbortRollout]. It fails like [BBS.PauseRollout].
func (b *BBS) AbortRollout(ctx context.Context, processGUID string) error {
	return b.changeDeployment(ctx, "AbortRollout", processGUID, existing(processGUID, (*lrp.Deployment).AbortRollout))
}

func existing(processGUID string, f func(*lrp.Deployment) (lrp.Change, error)) func(*lrp.Deployment) (lrp.Change, error) {
	return func(d *lrp.Deployment) (lrp.Change, error) {
		if d == nil {
			return lrp.Change{}, &storage.NotFoundError{Key: storage.DeploymentKey(processGUID)}
		}
		return f(d)
	}
}

// changeDeployment commits a consumer's change and brings the instances up to
// date. Once the change is committed the call has succeeded; the leader at that
// time tries the rest again.
func (b *BBS) changeDeployment(ctx context.Context, method, processGUID string, decide func(*lrp.Deployment) (lrp.Change, error)) error {
	change, committed, err := storage.ApplyDeployment(ctx, b.o.Store, processGUID, b.once(ctx, method), func(d *lrp.Deployment) (lrp.Change, error) {
		change, err := decide(d)
		if err == nil {
			err = b.o.LRPs.Allows(change)
		}
		return b.o.LRPs.Record(change, storage.Caller(ctx), b.o.Now()), err
	})
	if _, err := b.outcome(ctx, method, committed, err); err != nil {
		return b.answer(method, err)
	}
	if err != nil || change.IsZero() || b.o.Effects == nil {
		return nil // carried out before, nothing to do, or for the leader to do
	}
	if err := b.follow(ctx, processGUID); err != nil {
		b.o.Logger.Warn("the instances do not follow their deployment yet; it is tried again", "process", processGUID, "err", err)
		b.unfollowed(processGUID)
	}
	return nil
}

// follow makes the missing instances of a process, stops the surplus ones, and
// takes the first step of a rollout.
func (b *BBS) follow(ctx context.Context, processGUID string) error {
	d, slots, err := b.process(ctx, processGUID)
	if err != nil {
		return err
	}
	steps, err := b.delta(ctx, processGUID, d, slots)
	if err != nil {
		return err
	}
	var effects []lrp.Effect
	for chunk := range slices.Chunk(steps, b.o.BatchSize) {
		committed, stepErr := b.commitSteps(ctx, d, chunk)
		effects = append(effects, committed...)
		err = errors.Join(err, stepErr)
	}
	b.carry(effects, nil)
	if d != nil && (len(d.Definitions) > 1 || d.Rollout != nil && d.HealthyDefinitionID != d.ActiveDefinitionID) {
		err = errors.Join(err, b.ContinueRollout(ctx, processGUID))
	}
	return err
}

// process reads the bare deployment of a process, nil if there is none, and its
// slots in order, all from one moment. It omits a record that cannot be
// decoded; convergence moves that away.
func (b *BBS) process(ctx context.Context, processGUID string) (d *lrp.Deployment, slots []lrp.Slot, err error) {
	err = b.o.Store.View(ctx, func(r storage.Reader) error {
		for found, err := range r.Deployments(ctx, storage.DeploymentFilter{ProcessGUIDs: []string{processGUID}, Bare: true}) {
			if err != nil {
				return err
			}
			d = found
		}
		for slot, err := range storage.SlotsOf(r.ActualLRPs(ctx, storage.ActualLRPFilter{ProcessGUIDs: []string{processGUID}})) {
			if errors.Is(err, storage.ErrCorrupt) {
				continue
			}
			if err != nil {
				return err
			}
			slots = append(slots, slot)
		}
		return nil
	})
	return d, slots, err
}

// A slotStep is a command that is due for a slot.
type slotStep struct {
	slot    lrp.Slot
	command lrp.Command
}

// delta lists the commands that make missing indices and stop surplus ones.
func (b *BBS) delta(ctx context.Context, processGUID string, d *lrp.Deployment, slots []lrp.Slot) ([]slotStep, error) {
	var steps []slotStep
	var have []int
	bare := map[int]lrp.Slot{} // desired, with records but no ORDINARY one
	var gone []string
	for _, s := range slots {
		ordinary := slices.ContainsFunc(s.Records, func(r lrp.ActualLRP) bool { return r.Presence == lrp.Ordinary })
		switch {
		case !d.Desires(s.Index):
			if gone == nil {
				var err error
				if gone, err = b.missingCells(ctx, slots); err != nil {
					return nil, err
				}
			}
			steps = append(steps, slotStep{s, lrp.StopExtra{MissingCells: gone}})
		case ordinary:
			have = append(have, s.Index)
		default:
			bare[s.Index] = s
		}
	}
	if d == nil {
		return steps, nil
	}
	missing, _ := lrp.Delta(d.Instances, have)
	for _, index := range missing {
		s, found := bare[index]
		if !found {
			s = lrp.Slot{ProcessGUID: processGUID, Index: index}
		}
		steps = append(steps, slotStep{s, lrp.CreateMissing{}})
	}
	return steps, nil
}

// missingCells lists the cells of the records that are not present. If no cell
// is present, nothing is known about any; the list is never nil.
//
// Convergence judges the absence of cells by a [converge.Guard], over time and for
// the whole fleet, because it replaces instances that nobody asked to stop. Here
// the caller wants these instances to stop, any process with the store may ask,
// and nobody else remembers who was present before. So absence is enough: a record
// on an absent cell goes at once (000 §Stopping ActualLRPs). A cell that was only
// cut off deletes the container, which has no record, when it is back.
func (b *BBS) missingCells(ctx context.Context, slots []lrp.Slot) ([]string, error) {
	present, err := b.Cells(ctx)
	missing := []string{}
	if err != nil || len(present) == 0 {
		return missing, err
	}
	for _, s := range slots {
		for i := range s.Records {
			id := s.Records[i].CellID
			if id != "" && !slices.Contains(missing, id) && !slices.ContainsFunc(present, func(p CellPresence) bool { return p.CellID == id }) {
				missing = append(missing, id)
			}
		}
	}
	return missing, nil
}

// commitSteps commits many steps at once, which were decided on what was read.
// If another commit changed one of the slots first, each step is done by itself.
func (b *BBS) commitSteps(ctx context.Context, d *lrp.Deployment, steps []slotStep) (effects []lrp.Effect, err error) {
	var batch storage.Batch
	for _, s := range steps {
		decision, err := lrp.Step(s.slot, d, s.command, b.o.Now(), b.o.LRPs)
		if err != nil {
			return nil, err
		}
		batch.AddLRP(s.slot, d, decision)
		effects = append(effects, decision.Effects...)
	}
	if batch.IsEmpty() {
		return effects, nil
	}
	if _, err = b.o.Store.Commit(ctx, batch); !errors.Is(err, storage.ErrConflict) {
		if err != nil {
			effects = nil
		}
		return effects, err
	}
	effects, err = nil, nil
	for _, s := range steps {
		decision, _, stepErr := storage.ApplySlot(ctx, b.o.Store, s.slot.ProcessGUID, s.slot.Index, nil, func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
			return lrp.Step(slot, d, s.command, b.o.Now(), b.o.LRPs)
		})
		effects = append(effects, decision.Effects...)
		err = errors.Join(err, stepErr)
	}
	return effects, err
}

// ContinueRollout takes one look at a process and every step of its rollout
// that is due (003 §UpdateLRPDeployment). It carries out the effect of that
// name.
func (b *BBS) ContinueRollout(ctx context.Context, processGUID string) error {
	if err := storage.Leads(b.o.Store); err != nil { // a standby's clock may be wrong
		return err
	}
	d, slots, err := b.process(ctx, processGUID)
	if err != nil || d == nil {
		return err
	}
	rollout := lrp.NewRollout(d, b.o.Now(), b.o.LRPs)
	var effects []lrp.Effect
	for _, s := range slots {
		command := rollout.Visit(s)
		if command == nil {
			continue
		}
		decision, _, stepErr := storage.ApplySlot(ctx, b.o.Store, processGUID, s.Index, nil, func(slot lrp.Slot, d *lrp.Deployment) (lrp.Decision, error) {
			return lrp.Step(slot, d, command, b.o.Now(), b.o.LRPs)
		})
		err = errors.Join(err, stepErr)
		failed := command == (lrp.FailRollout{})
		for _, e := range decision.Effects {
			// This look is the continuation; the next one comes with the next
			// instance that runs. But a rollout that was rolled back begins anew.
			if e.Kind != lrp.ContinueRollout || failed {
				effects = append(effects, e)
			}
		}
		if failed {
			break // the rest was to be planned for a rollout that has ended
		}
	}
	if next := rollout.Next(); !next.IsZero() {
		b.waits(processGUID, next)
	}
	b.carry(effects, nil)
	return err
}

// RolloutStatus reports the progress of a deployment towards its active
// definition. The error wraps storage.ErrNotFound if there is none.
func (b *BBS) RolloutStatus(ctx context.Context, processGUID string) (lrp.RolloutStatus, error) {
	d, slots, err := b.process(ctx, processGUID)
	if err == nil && d == nil {
		err = &storage.NotFoundError{Key: storage.DeploymentKey(processGUID)}
	}
	if err != nil {
		return lrp.RolloutStatus{}, err
	}
	rollout := lrp.NewRollout(d, b.o.Now(), b.o.LRPs)
	for _, s := range slots {
		rollout.Visit(s) // what is due there is for others to do
	}
	return rollout.Status(), nil
}

// Deployments lists those that f wants, ordered by process guid.
func (b *BBS) Deployments(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	return b.o.Store.Deployments(ctx, f)
}

// Deployment is the deployment of a process. The error wraps
// storage.ErrNotFound if there is none.
func (b *BBS) Deployment(ctx context.Context, processGUID string) (*lrp.Deployment, error) {
	return b.o.Store.Deployment(ctx, processGUID)
}

// DesiredLRPs lists the deployments that f wants, in the form for consumers
// that know one definition only.
func (b *BBS) DesiredLRPs(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.DesiredLRP, error] {
	return projected(b.o.Store.Deployments(ctx, f), (*lrp.Deployment).Project)
}

// RoutingInfos lists what routers need of the deployments that f wants, ordered
// by process guid. It reads no definition. See [BBS.ResolvedLRPs] for the
// instances.
func (b *BBS) RoutingInfos(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.RoutingInfo, error] {
	return projected(b.withoutDefinitions(ctx, f), (*lrp.Deployment).RoutingInfo)
}

// SchedulingInfos lists the deployments that f wants, for consumers that compare
// them with what they want, ordered by process guid. It reads no definition.
func (b *BBS) SchedulingInfos(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[lrp.SchedulingInfo, error] {
	return projected(b.withoutDefinitions(ctx, f), (*lrp.Deployment).SchedulingInfo)
}

func (b *BBS) withoutDefinitions(ctx context.Context, f storage.DeploymentFilter) iter.Seq2[*lrp.Deployment, error] {
	f.Bare, f.WithoutDefinitions = false, true
	return b.o.Store.Deployments(ctx, f)
}

// projected lists deployments in the form that a group of consumers wants.
func projected[T any](list iter.Seq2[*lrp.Deployment, error], project func(*lrp.Deployment) T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for d, err := range list {
			var shown T
			if err == nil {
				shown = project(d)
			}
			if !yield(shown, err) {
				return
			}
		}
	}
}

// DesiredLRP is the desired LRP of a process. The error wraps
// storage.ErrNotFound if there is none.
func (b *BBS) DesiredLRP(ctx context.Context, processGUID string) (lrp.DesiredLRP, error) {
	d, err := b.o.Store.Deployment(ctx, processGUID)
	if err != nil {
		return lrp.DesiredLRP{}, err
	}
	return d.Project(), nil
}
