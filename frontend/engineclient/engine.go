package engineclient

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// ErrNotConnected is wrapped by the error of a message to an engine that isn't registered, or of a call to one that was lost
// before it answered.
var ErrNotConnected = errors.New("not connected")

// engine is one engine as seen from here.
type engine struct {
	rank   int
	inputs []atomic.Pointer[zmtp.Conn] // by client; nil = not registered there. Sending needs no lock.

	mu    sync.Mutex // held over a change and the event that tells of it
	ready bool       // has said READY
	hails int        // handshakes that have begun and not ended
	up    bool
	info  *enginecore.ReadyResponse // nil = never registered
	spoke []<-chan struct{}         // by client; closed when the output connection it spoke over last has been read to its end
}

// lastWords bounds the wait for what an engine that has gone said before.
const lastWords = 500 * time.Millisecond

func newEngine(rank, clients int) *engine {
	return &engine{rank: rank, inputs: make([]atomic.Pointer[zmtp.Conn], clients), spoke: make([]<-chan struct{}, clients)}
}

// identified finds the engine of a connection. Its identity is its rank in two bytes, little-endian.
func (f *Frontend) identified(c *zmtp.Conn) (*engine, error) {
	id := c.PeerIdentity()
	if len(id) != 2 {
		return nil, fmt.Errorf("identity %x: want the rank in 2 bytes", id)
	}
	rank := int(binary.LittleEndian.Uint16(id))
	if rank >= len(f.engines) {
		return nil, fmt.Errorf("identity %x: rank %d, want 0 to %d", id, rank, len(f.engines)-1)
	}
	return f.engines[rank], nil
}

// greeting enters that the engine begins a handshake. It isn't up before the end of it.
func (f *Frontend) greeting(e *engine) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hails++
}

// greeted enters that a handshake has ended, with READY or without. One that comes back gives its handshake up when it gets through to
// the addresses that it had before.
func (f *Frontend) greeted(e *engine, ready bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.hails--
	e.ready = e.ready || ready
	f.settle(e)
}

// registered takes an engine's connection to the input of a client. One that was there before gives way, and what was asked
// over it is lost.
func (f *Frontend) registered(e *engine, client int, c *zmtp.Conn, r *enginecore.ReadyResponse) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if old := e.inputs[client].Swap(c); old != nil {
		_ = old.Close(atOnce()) // its engine has gone, or wouldn't be here
		f.lost(e, client, zmtp.ErrReplaced)
	}
	e.info = r
	f.settle(e)
}

// speaks enters that an engine is heard over an output connection, of which endedC is closed at its end.
func (e *engine) speaks(client int, endedC <-chan struct{}) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.spoke[client] = endedC
}

func (e *engine) spokeOver(client int) <-chan struct{} {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.spoke[client]
}

// hearOut waits until all has been read that an engine said before its end: its output is another connection than its input, and
// may be behind.
func (f *Frontend) hearOut(e *engine, client int) {
	endedC := e.spokeOver(client)
	if endedC == nil {
		return
	}
	timer := time.NewTimer(lastWords)
	defer timer.Stop()
	select {
	case <-endedC:
	case <-timer.C:
	case <-f.closedC:
	}
}

// left enters that an input connection has ended.
func (f *Frontend) left(e *engine, client int, c *zmtp.Conn, err error) {
	f.hearOut(e, client)
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.inputs[client].CompareAndSwap(c, nil) {
		f.lost(e, client, err)
	}
}

// lost has e.mu.
func (f *Frontend) lost(e *engine, client int, err error) {
	f.calls.fail(e.rank, client, fmt.Errorf("%w: %w", ErrNotConnected, err))
	if !e.up {
		return
	}
	e.up = false
	f.count(-1)
	if f.options.Lost != nil && !errors.Is(err, zmtp.ErrClosed) {
		f.options.Lost(e.rank, err)
	}
}

// settle finds out whether an engine has come up. It has e.mu.
func (f *Frontend) settle(e *engine) {
	if e.up || e.step() != "" {
		return
	}
	e.up = true
	if f.options.Up != nil {
		f.options.Up(e.rank, *e.info)
	}
	f.count(1)
}

// step is what the engine has to do before it is up; it has e.mu.
func (e *engine) step() string {
	for client := range e.inputs {
		if e.inputs[client].Load() == nil {
			return fmt.Sprintf("not registered at input %d", client)
		}
	}
	if !e.ready || e.hails > 0 {
		return "has not said READY"
	}
	return ""
}

func (e *engine) missing() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.step()
}

func (e *engine) registration() (enginecore.ReadyResponse, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.info == nil {
		return enginecore.ReadyResponse{}, false
	}
	return *e.info, true
}
