package engineclient

import (
	"context"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for an event before it fails.
const patience = 20 * time.Second

func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
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

// listen opens a frontend at a free port, unless o says where.
func listen(t *testing.T, o Options) *Frontend {
	t.Helper()
	if o.Handshake == "" {
		o.Handshake = "tcp://127.0.0.1:0"
	}
	f, err := Listen(o)
	if err != nil {
		t.Fatalf("Listen: %v", err)
	}
	t.Cleanup(func() { _ = f.Close(atOnce()) })
	return f
}

func ready(t *testing.T, f *Frontend) {
	t.Helper()
	if err := f.Ready(within(t)); err != nil {
		t.Fatalf("Ready: %v", err)
	}
}

func identity(rank int) []byte { return binary.LittleEndian.AppendUint16(nil, uint16(rank)) }

func dial(t *testing.T, address string, as zmtp.SocketType, id []byte) *zmtp.Conn {
	t.Helper()
	c, err := zmtp.Dial(within(t), address, zmtp.Options{Type: as, Identity: id})
	if err != nil {
		t.Fatalf("dial %s: %v", address, err)
	}
	t.Cleanup(func() { _ = c.Close(atOnce()) })
	return c
}

func send(t *testing.T, c *zmtp.Conn, frames ...[]byte) {
	t.Helper()
	if err := c.Send(frames...); err != nil {
		t.Fatalf("send: %v", err)
	}
}

func recv(t *testing.T, c *zmtp.Conn) [][]byte {
	t.Helper()
	defer context.AfterFunc(within(t), func() { _ = c.Close(atOnce()) })()
	frames, err := c.Recv()
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return frames
}

// fakeEngine is an engine that does what the test tells it to.
type fakeEngine struct {
	rank    int
	hello   *zmtp.Conn
	init    enginecore.Init
	inputs  []*zmtp.Conn
	outputs []*zmtp.Conn
}

func status(s string) []byte {
	return enginecore.AppendHello(nil, enginecore.Hello{Status: s, Headless: true})
}

// greetAt says HELLO and takes the INIT.
func greetAt(t *testing.T, address string, rank int) *fakeEngine {
	t.Helper()
	e := &fakeEngine{rank: rank, hello: dial(t, address, zmtp.Dealer, identity(rank))}
	send(t, e.hello, status(enginecore.StatusHello))
	init, err := enginecore.DecodeInit(recv(t, e.hello)[0])
	if err != nil {
		t.Fatalf("INIT: %v", err)
	}
	e.init = init
	return e
}

// connect opens the data sockets and registers.
func (e *fakeEngine) connect(t *testing.T) {
	t.Helper()
	e.inputs, e.outputs = nil, nil
	for i := range e.init.Inputs {
		in := dial(t, e.init.Inputs[i], zmtp.Dealer, identity(e.rank))
		e.inputs = append(e.inputs, in)
		e.outputs = append(e.outputs, dial(t, e.init.Outputs[i], zmtp.Push, nil))
		send(t, in, enginecore.AppendReady(nil, registration(e.rank)))
	}
}

func registration(rank int) *enginecore.ReadyResponse {
	return &enginecore.ReadyResponse{MaxModelLen: 4096, DType: "float32", Version: "0.33.0", DataParallelRank: uint64(rank)}
}

// join is the whole of an engine's start.
func join(t *testing.T, f *Frontend, rank int) *fakeEngine {
	t.Helper()
	e := greetAt(t, f.Handshake(), rank)
	e.connect(t)
	send(t, e.hello, status(enginecore.StatusReady))
	return e
}

// vanish ends all connections as a killed process does.
func (e *fakeEngine) vanish() {
	for _, c := range append(e.inputs, e.outputs...) {
		_ = c.Close(atOnce())
	}
}

// say sends one token of each of the requests on the output of a client.
func (e *fakeEngine) say(t *testing.T, client int, ids ...string) {
	t.Helper()
	var b enginecore.Batch
	b.Reset(enginecore.Version{}, uint32(e.rank))
	for i, id := range ids {
		b.Token(enginecore.EncodeID(id), []uint32{uint32(i)})
	}
	send(t, e.outputs[client], b.Finish(nil, 1.5))
}

// recorder keeps copies of the events it is connected to. Its channels have room for all of a test's.
type recorder struct {
	outputs  chan heard
	up       chan int
	lost     chan error
	dead     chan [2]int
	reports  chan enginecore.SchedulerStats
	refusals chan error
}

// heard is a delivery in short.
type heard struct {
	Client, Rank int
	IDs          string
}

func record() (*recorder, Events) {
	r := &recorder{
		outputs: make(chan heard, 64), up: make(chan int, 64), lost: make(chan error, 64),
		dead: make(chan [2]int, 64), reports: make(chan enginecore.SchedulerStats, 64), refusals: make(chan error, 64),
	}
	return r, Events{
		Outputs: func(d *Delivery) {
			h := heard{Client: d.Client, Rank: int(d.Outputs.EngineIndex)}
			for _, o := range d.Outputs.Requests {
				h.IDs += string(o.ID) + " "
			}
			r.outputs <- h
		},
		Up:      func(rank int, _ enginecore.ReadyResponse) { r.up <- rank },
		Lost:    func(_ int, err error) { r.lost <- err },
		Dead:    func(client, rank int) { r.dead <- [2]int{client, rank} },
		Report:  func(o *enginecore.Outputs) { r.reports <- *o.Stats },
		Refused: func(err error) { r.refusals <- err },
	}
}

func wantError(t *testing.T, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("error = %v, want one that wraps %q", err, target)
	}
}

// ended waits until the frontend has ended a connection.
func ended(t *testing.T, c *zmtp.Conn) {
	t.Helper()
	defer context.AfterFunc(within(t), func() { _ = c.Close(atOnce()) })()
	if frames, err := c.Recv(); err == nil || errors.Is(err, zmtp.ErrClosed) {
		t.Errorf("connection: message of %d frames, %v; want its end by the frontend", len(frames), err)
	}
}
