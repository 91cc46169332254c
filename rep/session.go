package rep

import (
	"context"
	"strings"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
)

// maxAuditedBytes is how much of a command an audit shows.
const maxAuditedBytes = 1 << 10

// Audited carries out a session in a container: kind is "exec", "copy_in" or
// "copy_out", and command the program with its arguments, or the path. The log says
// who began it and how it ended, which is nil for a copy. The environment and what
// is typed are in no log.
func (r *Rep) Audited(ctx context.Context, containerGUID, kind string, command []string, session func() (*executor.Exit, error)) error {
	c, _ := r.o.Executor.Get(containerGUID)
	work := ""
	if s, ours := subjectOf(c); ours {
		work = s.name()
	}
	log := r.o.Logger.With("kind", kind, "caller", storage.Caller(ctx), "container", containerGUID, "work", work, "command", shortened(command))
	began := r.o.Now()
	log.Info("a session begins")
	end, err := session()
	took := r.o.Now().Sub(began)
	switch {
	case err != nil:
		log.Info("a session has failed", "took", took, "err", err)
	case end == nil:
		log.Info("a session has ended", "took", took)
	default:
		log.Info("a session has ended", "took", took, "end", end.String())
	}
	return err
}

// shortened is a command of which an audit can show all.
func shortened(command []string) []string {
	list, left := []string{}, maxAuditedBytes
	for _, arg := range command {
		if len(arg) >= left {
			return append(list, strings.ToValidUTF8(arg[:left], "")+"…")
		}
		list, left = append(list, arg), left-len(arg)-1
	}
	return list
}
