//go:build unix

package stdio

import (
	"io"
	"os"
	"sync"
	"syscall"
	"time"
)

// carried carries what comes out of a pipe, in a goroutine.
type carried struct {
	w      io.Writer
	pace   *Pace
	reader *os.File
	raw    syscall.RawConn // of reader
	done   chan struct{}   // closed when nothing will be carried any more
	stop   chan struct{}   // closed by close
	once   sync.Once       // of close
	mu     sync.Mutex      // held from a read to the end of its write
}

func carry(w io.Writer, pace *Pace, done chan struct{}) (*carried, *os.File, error) {
	reader, child, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	raw, err := reader.SyscallConn()
	if err != nil {
		reader.Close()
		child.Close()
		return nil, nil, err
	}
	p := &carried{w: w, pace: pace, reader: reader, raw: raw, done: done, stop: make(chan struct{})}
	go p.carry()
	return p, child, nil
}

// drain implements carrier.
func (p *carried) drain() {
	p.raw.Control(func(fd uintptr) {
		for total := 0; total < drainLimit; {
			n, state := p.move(fd)
			if state != moved {
				return
			}
			total += max(n, page)
		}
	})
}

// close implements carrier.
func (p *carried) close() {
	p.once.Do(func() { close(p.stop) })
	p.reader.Close()
	<-p.done
}

// carry moves output until every holder of the other end has closed it or
// close is called. Between two moves it waits for its turn and then in the runtime's
// poller, without a thread and without a buffer.
func (p *carried) carry() {
	defer close(p.done)
	pause := time.NewTimer(gap)
	defer pause.Stop()
	for {
		state := ended
		err := p.raw.Read(func(fd uintptr) bool {
			_, state = p.move(fd)
			return state != empty
		})
		if err != nil || state == ended {
			p.reader.Close()
			return
		}
		pause.Reset(p.pace.pause())
		select {
		case <-pause.C:
		case <-p.stop:
		}
	}
}

// move carries at most one buffer. The writer's errors change nothing for the
// process.
func (p *carried) move(fd uintptr) (int, moveState) {
	p.mu.Lock()
	defer p.mu.Unlock()
	buffer := buffers.Get().(*[bufferSize]byte)
	defer buffers.Put(buffer)
	for {
		n, err := syscall.Read(int(fd), buffer[:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			return 0, empty
		case err != nil || n <= 0:
			return 0, ended
		}
		p.w.Write(buffer[:n])
		return n, moved
	}
}
