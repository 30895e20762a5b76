//go:build chaos

package chaos

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/proctest"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// front is a frontend at the level of the engine-core protocol, which counts the ends of requests.
type front struct {
	*engineclient.Frontend
	mu     sync.Mutex
	ends   map[string][]enginecore.FinishReason // by request
	tokens map[string]int
}

// listen opens a frontend for n engines there.
func listen(t *testing.T, address string, n int) *front {
	t.Helper()
	f := &front{ends: map[string][]enginecore.FinishReason{}, tokens: map[string]int{}}
	var err error
	f.Frontend, err = engineclient.Listen(engineclient.Options{
		Handshake: address, Engines: n, KeepHandshake: true, Events: engineclient.Events{Outputs: f.take},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.close)
	return f
}

func (f *front) close() { _ = f.Close(expired()) } // nobody is left to flush to

// expired is a context that has ended.
func expired() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func (f *front) take(d *engineclient.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range d.Outputs.Requests {
		id := string(r.ID)
		f.tokens[id] += len(r.Tokens)
		if r.Finish != 0 {
			f.ends[id] = append(f.ends[id], r.Finish)
		}
	}
}

// endsOf returns how a request ended, as often as it was told.
func (f *front) endsOf(id string) []enginecore.FinishReason {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ends[id]
}

// ended is the number of requests that have ended.
func (f *front) ended() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.ends)
}

// play runs n engines under f until all have joined.
func (f *front) play(t *testing.T, n int, more ...string) *program {
	t.Helper()
	p := launch{}.start(t, playArgs(f.Handshake(), n, more...)...)
	p.awaitControl(t)
	f.awaitReady(t)
	return p
}

func (f *front) awaitReady(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := f.Ready(ctx); err != nil {
		t.Fatal(err)
	}
}

// add sends an engine a request of so many tokens.
func (f *front) add(t *testing.T, rank int, id string, tokens uint32) {
	t.Helper()
	if err := f.try(rank, id, tokens); err != nil {
		t.Error(err)
	}
}

// try is add for an engine that may be gone.
func (f *front) try(rank int, id string, tokens uint32) error {
	sampling := enginecore.DefaultSampling()
	sampling.MaxTokens, sampling.IgnoreEOS = tokens, true
	return f.Client(0).Add(rank, &enginecore.Request{ID: id, PromptTokens: []uint32{1, 2, 3}, Sampling: &sampling})
}

// awaitEnded waits until so many requests have ended.
func (f *front) awaitEnded(t *testing.T, n int) {
	t.Helper()
	proctest.Eventually(t, patience, func() error {
		if got := f.ended(); got != n {
			return fmt.Errorf("%d requests have ended, want %d", got, n)
		}
		return nil
	})
}

// rude is a frontend that sends whatever a test wants it to, or nothing.
type rude struct {
	t                *testing.T
	handshake, input *zmtp.RouterSocket
	output           *zmtp.Puller
}

func newRude(t *testing.T) *rude {
	t.Helper()
	router := func() *zmtp.RouterSocket {
		s, err := zmtp.ListenRouter("tcp://127.0.0.1:0", zmtp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(expired()) }) // what is queued does not matter
		return s
	}
	output, err := zmtp.ListenPull("tcp://127.0.0.1:0", zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = output.Close() })
	return &rude{t, router(), router(), output}
}

// hello waits for the HELLO of any engine and returns its identity.
func (r *rude) hello() []byte {
	r.t.Helper()
	identity, _, err := r.handshake.Recv()
	if err != nil {
		r.t.Fatal(err)
	}
	return bytes.Clone(identity)
}

// join takes one engine through the handshake and tells it that inputs wait there.
func (r *rude) join(input string) (identity []byte) {
	r.t.Helper()
	identity = r.hello()
	init := enginecore.AppendInit(nil, enginecore.Init{Inputs: []string{input}, Outputs: []string{r.output.Address()}})
	if err := r.handshake.Send(identity, init); err != nil {
		r.t.Fatal(err)
	}
	if _, _, err := r.input.Recv(); err != nil { // the registration
		r.t.Fatal(err)
	}
	return identity
}

// next returns the next message of an engine that carries outputs.
func (r *rude) next() enginecore.Outputs {
	r.t.Helper()
	for {
		frames, err := r.output.Recv()
		if err != nil {
			r.t.Fatal(err)
		}
		var o enginecore.Outputs
		if err := enginecore.DecodeOutputs(bytes.Clone(frames[0]), &o); err != nil {
			r.t.Fatal(err)
		}
		if len(o.Requests) > 0 {
			return o
		}
	}
}
