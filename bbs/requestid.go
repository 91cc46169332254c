package bbs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/diegosdk/diego/executor"
	"github.com/diegosdk/diego/storage"
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
// carried out before, although it is now refused. If that cannot be found out,
// the refusal is no answer, and the error is the store's.
func (b *BBS) outcome(ctx context.Context, call string, err error) (repeated bool, _ error) {
	id := requestID(ctx, call)
	switch {
	case err == nil, id == "":
		return false, err
	case errors.Is(err, storage.ErrDuplicate):
		return true, nil
	case !isRefusal(err) || errors.Is(err, executor.ErrInvalid):
		return false, err
	}
	repeated, askErr := b.o.Store.Remembers(ctx, id)
	switch {
	case askErr != nil:
		return false, fmt.Errorf("whether %s was carried out before under its request id is not known: %w", call, askErr)
	case repeated:
		return true, nil
	}
	return false, err
}
