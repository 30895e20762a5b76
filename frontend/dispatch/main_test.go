package dispatch

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"testing"
	"time"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"

	"github.com/tinylib/msgp/msgp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test for something that is sure to come.
const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

func await[T any](t *testing.T, what string, c <-chan T) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("%s: not seen in %v", what, patience)
		panic("unreachable")
	}
}

// atOnce is a context that has ended.
func atOnce() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// rig is a dispatcher and fake engines that joined it.
type rig struct {
	*Dispatcher
	engines []*fake
	changes chan change
	refused chan error
}

type change struct {
	rank int
	err  error
}

func newRig(t *testing.T, engines int, observer Observer) *rig {
	t.Helper()
	r := emptyRig(t, engines, observer)
	for rank := range engines {
		r.engines = append(r.engines, r.join(t, rank))
		if c := await(t, "join", r.changes); c.rank != rank || c.err != nil {
			t.Fatalf("change = %+v, want engine %d up", c, rank)
		}
	}
	if err := r.Ready(within(t)); err != nil {
		t.Fatalf("Ready: %v", err)
	}
	return r
}

func emptyRig(t *testing.T, engines int, observer Observer) *rig {
	t.Helper()
	r := &rig{changes: make(chan change, 64), refused: make(chan error, 64)}
	d, err := New(Options{
		Handshake: "tcp://127.0.0.1:0", Engines: engines, Observer: observer, KeepHandshake: true,
		Changed: func(rank int, err error) { r.changes <- change{rank, err} },
		Refused: func(err error) { r.refused <- err },
	})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	r.Dispatcher = d
	t.Cleanup(func() { _ = d.Close(atOnce()) })
	return r
}

// fake is an engine that answers as the test tells it to.
type fake struct {
	t        *testing.T
	rank     int
	hello    *zmtp.Conn
	in, out  *zmtp.Conn
	requests chan enginecore.Request
	aborts   chan string
	calls    chan string // methods

	mu      sync.Mutex
	answer  answerer
	reading sync.WaitGroup
}

// answerer makes an engine's answer to a utility call; nil is a failure.
type answerer func(*fake, enginecore.UtilityCall) msgp.Raw

// join has an engine join that answers every call with true.
func (r *rig) join(t *testing.T, rank int) *fake {
	t.Helper()
	return r.joinAnswering(t, rank, func(*fake, enginecore.UtilityCall) msgp.Raw { return msgp.Raw{0xc3} })
}

func (r *rig) joinAnswering(t *testing.T, rank int, answer answerer) *fake {
	t.Helper()
	f := &fake{
		t: t, rank: rank, requests: make(chan enginecore.Request, 1024), aborts: make(chan string, 1024), calls: make(chan string, 64),
		answer: answer,
	}
	identity := binary.LittleEndian.AppendUint16(nil, uint16(rank))
	f.hello = f.dial(r.Handshake(), zmtp.Dealer, identity)
	f.say(f.hello, status(enginecore.StatusHello))
	frames, err := f.hello.Recv()
	if err != nil {
		t.Fatalf("INIT: %v", err)
	}
	init, err := enginecore.DecodeInit(frames[0])
	if err != nil {
		t.Fatalf("INIT: %v", err)
	}
	f.in = f.dial(init.Inputs[0], zmtp.Dealer, identity)
	f.out = f.dial(init.Outputs[0], zmtp.Push, nil)
	f.say(f.in, enginecore.AppendReady(nil, &enginecore.ReadyResponse{
		MaxModelLen: 4096 - uint64(rank), DType: "float32", Version: "0.33.0", MaxLoRAs: 2, SupportsLoRA: true,
	}))
	f.reading.Go(f.read)
	t.Cleanup(func() { f.vanish(); f.reading.Wait() })
	f.say(f.hello, status(enginecore.StatusReady))
	return f
}

func status(s string) []byte {
	return enginecore.AppendHello(nil, enginecore.Hello{Status: s, Headless: true})
}

func (f *fake) dial(address string, as zmtp.SocketType, identity []byte) *zmtp.Conn {
	f.t.Helper()
	c, err := zmtp.Dial(within(f.t), address, zmtp.Options{Type: as, Identity: identity})
	if err != nil {
		f.t.Fatalf("dial %s: %v", address, err)
	}
	return c
}

func (f *fake) say(c *zmtp.Conn, frames ...[]byte) {
	f.t.Helper()
	if err := c.Send(frames...); err != nil {
		f.t.Fatalf("send: %v", err)
	}
}

// read takes what the dispatcher sends until the connection ends.
func (f *fake) read() {
	for {
		frames, err := f.in.Recv()
		if err != nil {
			return
		}
		if err := f.take(frames); err != nil {
			f.t.Errorf("message to engine %d: %v", f.rank, err)
		}
	}
}

func (f *fake) take(frames [][]byte) error {
	switch frames[0][0] {
	case enginecore.FrameAdd:
		var r enginecore.Request
		err := enginecore.DecodeRequest(frames[1], &r)
		f.requests <- r
		return err
	case enginecore.FrameAbort:
		ids, err := enginecore.DecodeAbort(frames[1])
		for _, id := range ids {
			f.aborts <- id
		}
		return err
	case enginecore.FrameUtility:
		call, err := enginecore.DecodeUtility(frames[1])
		f.reply(call)
		f.calls <- call.Method
		return err
	default:
		return errors.New("unknown type")
	}
}

func (f *fake) reply(call enginecore.UtilityCall) {
	f.mu.Lock()
	value := f.answer(f, call)
	f.mu.Unlock()
	if value == nil {
		_ = f.out.Send(enginecore.AppendUtilityFailure(nil, uint32(f.rank), 1, call.CallID, "no"))
		return
	}
	_ = f.out.Send(enginecore.AppendUtilityResult(nil, uint32(f.rank), 1, call.CallID, value))
}

func (f *fake) answers(answer answerer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answer = answer
}

// vanish ends all connections as a killed process does.
func (f *fake) vanish() {
	for _, c := range []*zmtp.Conn{f.in, f.out, f.hello} {
		_ = c.Close(atOnce())
	}
}

// output is one request's part of a message.
type output struct {
	id  string
	out enginecore.Output
}

// send sends one message with the outputs, at an engine's time in seconds.
func (f *fake) send(at float64, stats *enginecore.SchedulerStats, outputs ...output) {
	f.t.Helper()
	var b enginecore.Batch
	b.Reset(enginecore.Version{}, uint32(f.rank))
	for _, o := range outputs {
		b.Add(enginecore.EncodeID(o.id), &o.out)
	}
	f.say(f.out, b.Finish(stats, at))
}

func tokens(id string, ids ...uint32) output {
	return output{id, enginecore.Output{Tokens: ids}}
}

func finished(id string, reason enginecore.FinishReason, ids ...uint32) output {
	return output{id, enginecore.Output{Tokens: ids, Finish: reason}}
}

func (f *fake) request() enginecore.Request {
	f.t.Helper()
	return await(f.t, "request", f.requests)
}

// request is one for maxTokens tokens.
func request(id string, maxTokens uint32) Request {
	p := enginecore.DefaultSampling()
	p.MaxTokens = maxTokens
	return Request{Request: enginecore.Request{ExternalID: id, PromptTokens: []uint32{1, 2, 3}, Sampling: &p}}
}

func (r *rig) submit(t *testing.T, req Request) *Stream {
	t.Helper()
	s, err := r.Submit(req)
	if err != nil {
		t.Fatalf("Submit: %v", err)
	}
	return s
}

// answer is all that came from a stream.
type answer struct {
	Tokens []uint32
	Finish enginecore.FinishReason
	Err    error
}

func drain(ctx context.Context, s *Stream) answer {
	var a answer
	for {
		c, err := s.Next(ctx)
		if err != nil {
			a.Err = err
			return a
		}
		a.Tokens = append(a.Tokens, c.Tokens...)
		a.Finish = c.Finish
	}
}
