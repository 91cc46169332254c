package transfer

import (
	"context"
	"io"
	"time"

	"github.com/diegosdk/diego/executor/internal/rate"
)

// All uploads together read and compress 64 MiB per second, in turns of a KiB, after as
// much at once. That takes processor time of the daemon, and a file with nothing but holes
// costs a tenant nothing.
const packEvery, packBurst = time.Second / packBurst, 64 << 10

// A rated reader takes a turn for each KiB that it has read. It ends with ctx.
type rated struct {
	ctx  context.Context
	rate *rate.Rate
	r    io.Reader
}

func (r *rated) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if n > 0 {
		if ended := r.rate.Wait(r.ctx, (n+1023)>>10); ended != nil {
			return n, ended
		}
	}
	return n, err
}
