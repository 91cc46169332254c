package httpapi

import (
	"context"

	"github.com/diegosdk/diego/bbs"
	"github.com/diegosdk/diego/internal/wire"
	"github.com/diegosdk/diego/lrp"
)

// inTurn is a BBS in which the changes of a process take turns. Each of them reads all
// definitions of the process, tens of MiB at worst, and again if another one was quicker.
type inTurn struct {
	bbs.API
	changes wire.Turns[string] // by process
}

// takeTurns is api in turns, with the optional interface that it has.
func takeTurns(api bbs.API) bbs.API {
	t := &inTurn{API: api}
	if p, tells := api.(bbs.PositionSubscriber); tells {
		return struct {
			*inTurn
			bbs.PositionSubscriber
		}{t, p}
	}
	return t
}

func (t *inTurn) change(ctx context.Context, processGUID string, f func() error) error {
	leave, err := t.changes.Take(ctx, processGUID, 1)
	if err != nil {
		return err
	}
	defer leave()
	return f()
}

func (t *inTurn) UpdateDeployment(ctx context.Context, processGUID string, u lrp.Update) error {
	return t.change(ctx, processGUID, func() error { return t.API.UpdateDeployment(ctx, processGUID, u) })
}

func (t *inTurn) UpdateDesiredLRP(ctx context.Context, l lrp.DesiredLRP, definitionID string) (id string, err error) {
	err = t.change(ctx, l.ProcessGUID, func() (err error) {
		id, err = t.API.UpdateDesiredLRP(ctx, l, definitionID)
		return err
	})
	return id, err
}

func (t *inTurn) ActivateDefinition(ctx context.Context, processGUID, definitionID string) error {
	return t.change(ctx, processGUID, func() error { return t.API.ActivateDefinition(ctx, processGUID, definitionID) })
}

func (t *inTurn) RollBack(ctx context.Context, processGUID string, revision int) error {
	return t.change(ctx, processGUID, func() error { return t.API.RollBack(ctx, processGUID, revision) })
}

func (t *inTurn) RestartDeployment(ctx context.Context, processGUID string) error {
	return t.change(ctx, processGUID, func() error { return t.API.RestartDeployment(ctx, processGUID) })
}

func (t *inTurn) PauseRollout(ctx context.Context, processGUID string) error {
	return t.change(ctx, processGUID, func() error { return t.API.PauseRollout(ctx, processGUID) })
}

func (t *inTurn) ResumeRollout(ctx context.Context, processGUID string) error {
	return t.change(ctx, processGUID, func() error { return t.API.ResumeRollout(ctx, processGUID) })
}

func (t *inTurn) ConfirmRollout(ctx context.Context, processGUID string) error {
	return t.change(ctx, processGUID, func() error { return t.API.ConfirmRollout(ctx, processGUID) })
}

func (t *inTurn) AbortRollout(ctx context.Context, processGUID string) error {
	return t.change(ctx, processGUID, func() error { return t.API.AbortRollout(ctx, processGUID) })
}

func (t *inTurn) DeleteDeployment(ctx context.Context, processGUID string) error {
	return t.change(ctx, processGUID, func() error { return t.API.DeleteDeployment(ctx, processGUID) })
}
