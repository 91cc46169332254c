package diego

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/executor/manager"
	"github.com/diegosdk/diego/rep"
	"github.com/diegosdk/diego/storage"
)

// A LocalCell is a cell of this process, to be served by [NewHandler] or dialled
// without a network.
type LocalCell struct {
	*rep.Rep
	// Manager has the rep's containers.
	Manager *manager.Manager
}

var _ Cell = LocalCell{}

// Evacuation implements [Cell].
func (c LocalCell) Evacuation(context.Context) (EvacuationStatus, error) {
	s := EvacuationStatus{Containers: len(c.Manager.List())}
	s.BeganAt, s.Deadline, s.Done = c.Rep.Evacuation()
	s.Evacuating = !s.BeganAt.IsZero()
	return s, nil
}

// Containers implements [Cell].
func (c LocalCell) Containers(context.Context) ([]executor.Container, error) {
	return c.Manager.List(), nil
}

// logPiece is how much of a log is passed on at once, at most.
const logPiece = 32 << 10

// Logs implements [Cell].
func (c LocalCell) Logs(ctx context.Context, r LogRequest) iter.Seq2[LogChunk, error] {
	stream := manager.Stream(r.Stream)
	if stream == "" {
		stream = manager.Stdout
	}
	return func(yield func(LogChunk, error) bool) {
		var v executor.Validator
		v.Check(stream == manager.Stdout || stream == manager.Stderr || stream == manager.Health, "stream", r.Stream, "stdout, stderr or health")
		v.Check(r.From >= 0, "from", r.From, "at least 0")
		if err := v.Err(); err != nil {
			yield(LogChunk{}, err)
			return
		}
		log, err := c.Manager.Log(ctx, r.ContainerGUID, stream, r.From, r.Follow)
		if errors.Is(err, manager.ErrNotFound) {
			err = errors.Join(storage.ErrNotFound, err)
		}
		if err != nil {
			yield(LogChunk{}, err)
			return
		}
		defer log.Close()
		buffer := make([]byte, logPiece)
		for {
			n, err := log.Read(buffer)
			if n > 0 && !yield(LogChunk{Next: log.Offset(), Data: append([]byte(nil), buffer[:n]...)}, nil) {
				return
			}
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(LogChunk{}, err)
				return
			}
		}
	}
}
