package httpapi

import (
	"encoding/json"
	"errors"

	"github.com/diegosdk/diego/httpapi/problem"
	"github.com/diegosdk/diego/internal/wire"
)

// This file cuts work into requests that a server takes. HandlerOptions.MaxBodyBytes
// bounds a request, and the client does not know it.

// At most so much work is in one request: pieceItems items, with pieceBytes of JSON unless
// it is one item. That is far below the default of MaxBodyBytes.
const (
	pieceItems = 1000
	pieceBytes = 1 << 20
)

// inPieces cuts a list of n items into pieces and calls send for one after the other, in
// order. A piece is the items with the numbers from, from+1 … to-1. size is the length of
// an item in JSON. A piece that the server refuses as too large is sent again as two
// halves; the server has carried out none of it. An item that is too large by itself goes
// to tooLarge, and the others are sent. Any other error of send is returned at once.
func inPieces(n int, size func(i int) int, send func(from, to int) error, tooLarge func(i int, err error)) error {
	for from := 0; from < n; {
		to, bytes := from+1, size(from)
		for to < n && to-from < pieceItems {
			if bytes += size(to); bytes > pieceBytes {
				break
			}
			to++
		}
		if err := inHalves(from, to, send, tooLarge); err != nil {
			return err
		}
		from = to
	}
	return nil
}

func inHalves(from, to int, send func(from, to int) error, tooLarge func(i int, err error)) error {
	err := send(from, to)
	var large *problem.TooLargeError
	if !errors.As(err, &large) || large.What != wire.RequestBody {
		return err
	}
	if to-from == 1 {
		tooLarge(from, err)
		return nil
	}
	middle := (from + to) / 2
	if err := inHalves(from, middle, send, tooLarge); err != nil {
		return err
	}
	return inHalves(middle, to, send, tooLarge)
}

// jsonBytes is the length of a value in JSON. If it has none, sending it says why.
func jsonBytes(value any) int {
	text, _ := json.Marshal(value)
	return len(text)
}
