package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// A session is a connection that carries frames in both directions. This file has
// what both sides share.
//
// A frame is a byte for its kind, four bytes for the length of what follows, the
// most significant first, and that. Each stream has a window: its sender has at
// most windowBytes on the way that the receiver has not taken, so that neither
// side ever waits before it reads the next frame. Both sides say that they are
// alive, and each ends the session if it hears nothing of the other.
const (
	frameStdin   byte = iota // to the server
	frameStdout              // to the client
	frameStderr              // to the client
	frameEnd                 // of stdin, to the server
	frameTaken               // the kind of a stream, and four bytes: how much of it was taken
	frameControl             // JSON, to the server
	frameAlive
	frameResult // JSON, to the client; the last
)

const (
	windowBytes = 256 << 10
	pieceFrame  = 32 << 10 // of a stream
	maxFrame    = 1 << 20
	maxControl  = 4 << 10
)

// A side takes at most 2,000 frames per second of a session, after a burst of as many,
// where one of a piece or more counts as several. Most cost their sender nothing:
// windows bound only streams, and the cell's pace only what passes on.
const (
	frameEvery = time.Second / 2000
	frameBurst = 2000 * frameEvery
)

// A peer is one side of a session.
type peer struct {
	conn io.ReadWriteCloser
	// in are the streams that come, out those that go, by their kind.
	in  map[byte]*inflow
	out map[byte]*outflow
	// handle gets the other frames, in the goroutine of receive.
	handle func(kind byte, content []byte) error
	// senseless is wrapped by the errors of frames that make no sense.
	senseless error
	// write bounds a write; nil means that only the other side's silence ends it.
	write func()

	writing sync.Mutex

	mu  sync.Mutex
	err error // why it is over
}

var errSilent = errors.New("nothing was heard of the other side")

// end ends everything that waits, with an error.
func (p *peer) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err = err
	for _, f := range p.in {
		f.wake.Broadcast()
	}
	for _, f := range p.out {
		f.wake.Broadcast()
	}
}

// send writes one frame.
func (p *peer) send(kind byte, content []byte) error {
	frame := binary.BigEndian.AppendUint32(append(make([]byte, 0, 5+len(content)), kind), uint32(len(content)))
	p.writing.Lock()
	defer p.writing.Unlock()
	if p.write != nil {
		p.write()
	}
	_, err := p.conn.Write(append(frame, content...))
	if err != nil {
		p.end(err)
	}
	return err
}

// receive carries out what comes, until the connection ends. It never waits for
// anything else but the pace of frames.
func (p *peer) receive(silence time.Duration) error {
	silent := time.AfterFunc(silence, func() {
		p.end(fmt.Errorf("%w for %v; the network is cut, or one of the two hosts is too busy", errSilent, silence))
		p.conn.Close()
	})
	defer silent.Stop()
	var header [5]byte
	var due time.Time // of the next frame, without the burst
	for n := 1; ; n++ {
		if _, err := io.ReadFull(p.conn, header[:]); err != nil {
			return p.why(err)
		}
		size := binary.BigEndian.Uint32(header[1:])
		if size > maxFrame {
			return fmt.Errorf("%w: frame %d has %d bytes; want at most %d", p.senseless, n, size, maxFrame)
		}
		content := make([]byte, size)
		if _, err := io.ReadFull(p.conn, content); err != nil {
			return p.why(err)
		}
		silent.Reset(silence)
		switch err := p.frame(header[0], content); err {
		case nil:
		case errResult:
			return err
		default:
			return fmt.Errorf("%w: frame %d of kind %d: %w", p.senseless, n, header[0], err)
		}
		now := time.Now()
		if due.Before(now) {
			due = now
		}
		due = due.Add(time.Duration(1+size/pieceFrame) * frameEvery)
		time.Sleep(due.Sub(now) - frameBurst)
	}
}

// why is the reason for an error of the connection.
func (p *peer) why(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	return err
}

// frame carries out a frame. An error other than errResult says what makes no sense.
func (p *peer) frame(kind byte, content []byte) error {
	if f := p.in[kind]; f != nil {
		return f.put(content)
	}
	switch kind {
	case frameAlive:
		return nil
	case frameTaken:
		if len(content) != 5 || p.out[content[0]] == nil {
			return errors.New("it is about no stream")
		}
		return p.out[content[0]].grant(binary.BigEndian.Uint32(content[1:]))
	}
	return p.handle(kind, content)
}

// live says that this side is alive until stop is called.
func (p *peer) live(beat time.Duration) (stop func()) {
	over := make(chan struct{})
	go func() {
		ticker := time.NewTicker(beat)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				if p.send(frameAlive, nil) != nil {
					return
				}
			case <-over:
				return
			}
		}
	}()
	return sync.OnceFunc(func() { close(over) })
}

// An inflow is a stream that comes. It is read by one goroutine.
type inflow struct {
	peer  *peer
	kind  byte
	wake  *sync.Cond // with peer.mu
	held  []byte     // guarded by peer.mu
	ended bool       // guarded by peer.mu
	taken int        // that the other side does not know of
}

func (p *peer) inflow(kind byte) *inflow {
	f := &inflow{peer: p, kind: kind, wake: sync.NewCond(&p.mu)}
	p.in[kind] = f
	return f
}

func (f *inflow) put(content []byte) error {
	f.peer.mu.Lock()
	defer f.peer.mu.Unlock()
	if len(f.held)+len(content) > windowBytes || f.ended {
		return errors.New("it has more of a stream than there is room for, or comes after its end")
	}
	f.held = append(f.held, content...)
	f.wake.Signal()
	return nil
}

func (f *inflow) end() {
	f.peer.mu.Lock()
	defer f.peer.mu.Unlock()
	f.ended = true
	f.wake.Signal()
}

// Read implements [io.Reader].
func (f *inflow) Read(b []byte) (int, error) {
	f.peer.mu.Lock()
	for len(f.held) == 0 && !f.ended && f.peer.err == nil {
		f.wake.Wait()
	}
	n := copy(b, f.held)
	if f.held = f.held[n:]; len(f.held) == 0 {
		f.held = nil
	}
	empty, ended, err := f.held == nil, f.ended, f.peer.err
	f.peer.mu.Unlock()
	if n == 0 && len(b) > 0 {
		if ended {
			return 0, io.EOF
		}
		return 0, err
	}
	// Not after every byte, but before the other side has to wait.
	if f.taken += n; f.taken >= windowBytes/4 || empty && !ended {
		taken := binary.BigEndian.AppendUint32([]byte{f.kind}, uint32(f.taken))
		f.taken = 0
		_ = f.peer.send(frameTaken, taken) // the next Read says what is wrong
	}
	return n, nil
}

// An outflow is a stream that goes. It is written by one goroutine.
type outflow struct {
	peer *peer
	kind byte
	wake *sync.Cond // with peer.mu
	room int        // guarded by peer.mu
}

func (p *peer) outflow(kind byte) *outflow {
	f := &outflow{peer: p, kind: kind, wake: sync.NewCond(&p.mu), room: windowBytes}
	p.out[kind] = f
	return f
}

func (f *outflow) grant(n uint32) error {
	f.peer.mu.Lock()
	defer f.peer.mu.Unlock()
	if n > uint32(windowBytes-f.room) {
		return errors.New("it says that more of a stream was taken than was sent")
	}
	f.room += int(n)
	f.wake.Signal()
	return nil
}

// Write implements [io.Writer].
func (f *outflow) Write(b []byte) (written int, err error) {
	for written < len(b) {
		f.peer.mu.Lock()
		for f.room == 0 && f.peer.err == nil {
			f.wake.Wait()
		}
		n := min(len(b)-written, f.room, pieceFrame)
		f.room -= n
		err := f.peer.err
		f.peer.mu.Unlock()
		if err != nil {
			return written, err
		}
		if err := f.peer.send(f.kind, b[written:written+n]); err != nil {
			return written, err
		}
		written += n
	}
	return written, nil
}
