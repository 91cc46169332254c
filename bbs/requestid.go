package bbs

import (
	"cmp"
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

// WithRequestID marks a call, so that it can be repeated if its answer was
// lost. For at least an hour, the BBS carries out calls of one method with one
// id once, and answers the others as if they had succeeded. That matters if a
// repetition would be refused or change the outcome, for example a second
// Desire or Delete. The id may be any text that is used for one call only. Over
// HTTP an id belongs to its caller, by the common name of the certificate.
func WithRequestID(ctx context.Context, id string) context.Context {
	return storage.WithRequestID(ctx, id)
}

// WithCaller says who makes a call. The history of a deployment names the caller
// who made a definition active: lrp.Revision.By. Over HTTP it is the common name
// of the client's certificate.
func WithCaller(ctx context.Context, name string) context.Context {
	return storage.WithCaller(ctx, name)
}

// rememberedAs has the names under which stores remember calls, for the methods
// whose names are others. Daemons of different releases share a store, so these
// names do not change. An instance crashes once, whichever method says so.
var rememberedAs = map[string]string{
	"UpdateDeployment": "Update", "ActivateDefinition": "Activate", "DeleteDeployment": "Delete",
	"ClaimLRP": "Claim", "StartLRP": "Start", "RemoveLRP": "Remove", "FailActualLRP": "Fail",
	"CrashLRP": "Crash", "EvacuateCrashedLRP": "Crash",
	"EvacuateClaimedLRP": "EvacuateClaimed", "EvacuateStoppedLRP": "EvacuateStopped", "RemoveEvacuatingLRP": "RemoveEvacuating",
	"RejectStartedTask": "RejectTask",
}

// requestID is the id under which a call of a method is remembered, or "".
func requestID(ctx context.Context, method string) string {
	id := storage.RequestID(ctx)
	if id == "" {
		return ""
	}
	call := cmp.Or(rememberedAs[method], method)
	if len(call)+len(":")+len(id) > storage.MaxIdentifierBytes || !utf8.ValidString(id) || strings.Contains(id, "\x00") {
		sum := sha256.Sum256([]byte(id))
		id = hex.EncodeToString(sum[:])
	}
	return call + ":" + id
}

// outcome is the error with which to answer a call that was committed at a position
// of the log, 0 for nothing: none if this very call was carried out before, although
// it is now refused. If the store cannot say, the error is the store's, not the
// refusal. A commit proves that this process leads. Without one only the leader
// answers, because a standby's clock may be wrong.
func (b *BBS) outcome(ctx context.Context, method string, committed storage.Cursor, err error) (repeated bool, _ error) {
	id := requestID(ctx, method)
	switch {
	case err == nil && committed != 0:
		return false, nil
	case errors.Is(err, storage.ErrDuplicate):
		return true, nil
	case err != nil && (!isRefusal(err) || errors.Is(err, executor.ErrInvalid)):
		return false, err
	case err != nil && id != "":
		repeated, askErr := b.o.Store.Remembers(ctx, id)
		switch {
		case askErr != nil:
			return false, fmt.Errorf("whether %s was carried out before under its request id is not known: %w", method, askErr)
		case repeated:
			return true, nil
		}
	}
	return false, cmp.Or(storage.Leads(b.o.Store), err)
}
