package bbs

import (
	"context"
	"fmt"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// ReportSessions adds a cell's reports of sessions in its containers to the log
// of events, in their order and in one commit. A call takes at most
// storage.MaxSessionEvents reports, all from that cell. The BBS does not check
// that the containers have records, because a session may end after them.
func (b *BBS) ReportSessions(ctx context.Context, cellID string, list []storage.SessionEvent) error {
	const method = "ReportSessions"
	var v executor.Validator
	v.Check(len(list) <= storage.MaxSessionEvents, "sessions", len(list), fmt.Sprintf("at most %d", storage.MaxSessionEvents))
	for i := range list {
		at := v.At("sessions", i)
		list[i].Validate(at)
		at.Check(list[i].CellID == cellID, "cell_id", list[i].CellID, "the cell that reports it")
	}
	if err := v.Err(); err != nil {
		return b.answer(method, err)
	}
	committed, err := storage.Apply(ctx, b.o.Store, b.once(ctx, method), func(context.Context, storage.Reader) (batch storage.Batch, err error) {
		for i := range list {
			batch.Events = append(batch.Events, storage.Event{Session: &list[i]})
		}
		return batch, nil
	})
	_, err = b.outcome(ctx, method, committed, err)
	return b.answer(method, err)
}
