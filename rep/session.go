package rep

import (
	"context"
	"log/slog"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// maxAuditedBytes is how much of a command, or of an error, an audit shows.
const maxAuditedBytes = 1 << 10

// Audited carries out a session in a container: kind is storage.SessionExec,
// SessionCopyIn or SessionCopyOut, and command the program with its arguments,
// or the path. The cell's log, and the BBS's log of events if it is a
// [SessionReporter], say who began it and how it ended. Neither log has the
// environment or the input. session returns the exit of the program, nil for a
// copy. Audited does not wait for the reports. See [Rep.Refused] for a
// session that does not begin.
func (r *Rep) Audited(ctx context.Context, containerGUID, kind string, command []string, session func() (*executor.Exit, error)) error {
	e, log := r.audit(ctx, containerGUID, kind, command)
	log.Info("a session begins")
	r.reportSession(ctx, e)
	end, err := session()
	e.EndedAt, e.End = r.o.Now(), "copied"
	took := e.EndedAt.Sub(e.BeganAt)
	switch {
	case err != nil:
		log.Info("a session has failed", "took", took, "err", err)
		e.End, e.Failed = beginning(err.Error(), maxAuditedBytes), true
	case end == nil:
		log.Info("a session has ended", "took", took)
	default:
		e.End = end.String()
		log.Info("a session has ended", "took", took, "end", e.End)
	}
	r.reportSession(ctx, e)
	return err
}

// audit is what is reported of a session at its beginning, and the log for it. The
// report has no ID if the container belongs to no work.
func (r *Rep) audit(ctx context.Context, containerGUID, kind string, command []string) (storage.SessionEvent, *slog.Logger) {
	c, _ := r.o.Executor.Get(containerGUID)
	s, ours := subjectOf(c)
	work := ""
	if ours {
		work = s.name()
	}
	command = shortened(command)
	e := storage.SessionEvent{
		Kind: kind, Domain: c.Tags[executor.TagDomain], TaskGUID: s.task, CellID: r.o.CellID, InstanceGUID: containerGUID,
		Caller: beginning(storage.Caller(ctx), storage.MaxIdentifierBytes), Command: command, BeganAt: r.o.Now(),
	}
	if ours && !s.isTask() {
		e.ProcessGUID, e.Index = s.key.ProcessGUID, &s.key.Index
	}
	if ours {
		e.ID = r.o.NewGUID()
	}
	return e, r.o.Logger.With("kind", kind, "caller", storage.Caller(ctx), "container", beginning(containerGUID, storage.MaxIdentifierBytes), "work", work, "command", command)
}

// shortened is a command of which an audit can show all.
func shortened(command []string) []string {
	list, left := []string{}, maxAuditedBytes
	for _, arg := range command {
		if len(arg) >= left {
			return append(list, beginning(arg, left))
		}
		list, left = append(list, beginning(arg, left)), left-len(arg)-1
	}
	return list
}

// beginning is as much of a text as so many bytes hold, with a mark if some is
// missing. What is not UTF-8 becomes a question mark.
func beginning(text string, most int) string {
	const mark = "…"
	if len(text) > most {
		text = strings.ToValidUTF8(text[:max(most-len(mark), 0)], "") + mark
	}
	return strings.ToValidUTF8(text, "?")
}
