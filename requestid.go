package diego

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/diegosdk/diego/lrp"
	"github.com/diegosdk/diego/storage"
	"github.com/diegosdk/diego/task"
)

// WithRequestID marks a call, so that it can be repeated when its answer got
// lost: the BBS carries out calls of one method with one id once, and answers
// the others as if they had succeeded, for an hour at least. That matters where
// a repetition would be refused or change the outcome, as a second Desire or
// Delete. Any text that is used for one call only will do. Over HTTP an id is
// the caller's own, by the common name of its certificate.
func WithRequestID(ctx context.Context, id string) context.Context {
	return storage.WithRequestID(ctx, id)
}

// requestID is the id under which a call is remembered, or "".
func requestID(ctx context.Context, call string) string {
	id := storage.RequestID(ctx)
	if id == "" {
		return ""
	}
	if len(call)+len(":")+len(id) > storage.MaxIdentifierBytes || !utf8.ValidString(id) || strings.Contains(id, "\x00") {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return call + ":" + id
}

// outcome is the error to answer a call with: none if this very call was
// carried out before, although it is now refused.
func (b *BBS) outcome(ctx context.Context, call string, err error) (repeated bool, _ error) {
	id := requestID(ctx, call)
	if err == nil || id == "" {
		return false, err
	}
	var lrpRefused *lrp.TransitionError
	var taskRefused *task.TransitionError
	switch {
	case errors.Is(err, storage.ErrDuplicate):
		return true, nil
	case errors.As(err, &lrpRefused), errors.As(err, &taskRefused),
		errors.Is(err, lrp.ErrRefused), errors.Is(err, storage.ErrExists), errors.Is(err, storage.ErrNotFound):
		if b.remembered(ctx, id) {
			return true, nil
		}
	}
	return false, err
}

// remembered reports whether a request was committed. A store looks at the
// request's id before it looks at writes, and a write that conflicts leaves no
// trace; so it is asked with one that always does.
func (b *BBS) remembered(ctx context.Context, id string) bool {
	_, err := b.o.Store.Commit(ctx, storage.Batch{
		RequestID:  id,
		Quarantine: []storage.Quarantine{{Key: storage.TaskKey(id)}},
	})
	return errors.Is(err, storage.ErrDuplicate)
}
