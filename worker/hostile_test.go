package worker

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
	"vllm-vcr/worker/engine"
)

// rawFrontend is a frontend that sends whatever a test wants it to.
type rawFrontend struct {
	t         *testing.T
	handshake *zmtp.RouterSocket
	input     *zmtp.RouterSocket
	output    *zmtp.Puller
	identity  []byte
}

func newRawFrontend(t *testing.T) *rawFrontend {
	t.Helper()
	const free = "tcp://127.0.0.1:0"
	return newRawFrontendAt(t, free, free, free)
}

func newRawFrontendAt(t *testing.T, handshake, input, output string) *rawFrontend {
	t.Helper()
	router := func(address string) *zmtp.RouterSocket {
		s, err := zmtp.ListenRouter(address, zmtp.Options{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close(expired()) })
		return s
	}
	f := &rawFrontend{t: t, handshake: router(handshake), input: router(input)}
	var err error
	if f.output, err = zmtp.ListenPull(output, zmtp.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.output.Close() })
	return f
}

// join answers one HELLO and takes the registration.
func (f *rawFrontend) join() {
	f.t.Helper()
	identity, _, err := f.handshake.Recv()
	if err != nil {
		f.t.Fatal(err)
	}
	f.identity = bytes.Clone(identity)
	init := enginecore.AppendInit(nil, enginecore.Init{Inputs: []string{f.input.Address()}, Outputs: []string{f.output.Address()}})
	if err := f.handshake.Send(f.identity, init); err != nil {
		f.t.Fatal(err)
	}
	if _, _, err := f.input.Recv(); err != nil {
		f.t.Fatal(err)
	}
	_, frames, err := f.handshake.Recv()
	if err != nil {
		f.t.Fatal(err)
	}
	if word, err := enginecore.DecodeHello(frames[0]); err != nil || word.Status != enginecore.StatusReady {
		f.t.Fatalf("%+v, %v after the registration, want READY", word, err)
	}
}

func (f *rawFrontend) close() {
	_ = f.handshake.Close(expired())
	_ = f.input.Close(expired())
	_ = f.output.Close()
}

func (f *rawFrontend) send(frames ...[]byte) {
	f.t.Helper()
	if err := f.input.Send(f.identity, frames...); err != nil {
		f.t.Fatal(err)
	}
}

// next returns the next message of an engine that carries outputs.
func (f *rawFrontend) next() enginecore.Outputs {
	f.t.Helper()
	for {
		frames, err := f.output.Recv()
		if err != nil {
			f.t.Fatal(err)
		}
		var o enginecore.Outputs
		if err := enginecore.DecodeOutputs(bytes.Clone(frames[0]), &o); err != nil {
			f.t.Fatal(err)
		}
		if len(o.Requests) > 0 {
			return o
		}
	}
}

func joinRaw(t *testing.T, change func(*config.Config)) (*rig, *rawFrontend) {
	t.Helper()
	f := newRawFrontend(t)
	r := emptyRig(t)
	r.address = f.handshake.Address()
	r.start(t, rigOptions{change: change}, nil)
	f.join()
	r.awaitState(ipc.StateReady)
	return r, f
}

func TestHostile_MessagesCostOnlyThemselves(t *testing.T) {
	r, f := joinRaw(t, nil)
	add := []byte{enginecore.FrameAdd}
	req := request("good", 1)
	good := enginecore.AppendRequest(nil, enginecore.Version{}, &req)
	outOfRange := request("elsewhere", 1)
	outOfRange.ClientIndex = 7
	bomb := bytes.Repeat([]byte{0x91}, 1<<20)
	huge := append([]byte{0xdd}, binary.BigEndian.AppendUint32(nil, 1<<31-1)...)

	messages := [][][]byte{
		{{}},                                    // a type frame without a type, and no payload
		{add},                                   // no payload
		{{0, 0}, good},                          // a type of two bytes
		{{9}, good},                             // an unknown type
		{add, {}},                               // an empty payload
		{add, {0xc1}},                           // no msgpack
		{add, good[:3]},                         // cut before the id
		{add, bomb},                             // a million arrays in one another
		{add, huge},                             // two thousand million elements in no bytes
		{{enginecore.FrameAbort}, {0xc0, 0xc0}}, // no list
		{{enginecore.FrameAbort}, huge},         //
		{{enginecore.FrameUtility}, {0x93, 1, 2}}, // an array that ends early
		{{enginecore.FrameUtility}, enginecore.AppendUtility(nil, enginecore.UtilityCall{ClientIndex: 3, Method: "is_sleeping"})},
		{add, enginecore.AppendRequest(nil, enginecore.Version{}, &outOfRange)},
	}
	for _, m := range messages {
		f.send(m...)
	}
	// A wave of a coordinator that reached the wrong socket is no fault.
	f.send([]byte{enginecore.FrameStartWave}, []byte{0x92, 1, 0xc0})
	f.send(add, good, []byte("an auxiliary frame"))
	if got := f.next(); string(got.Requests[0].ID) != "good" || got.Requests[0].Finish != enginecore.FinishLength {
		t.Errorf("first output %q with finish %v, want good with length", got.Requests[0].ID, got.Requests[0].Finish)
	}
	if got := r.page.Dropped.Load(); got != uint64(len(messages)) {
		t.Errorf("%d messages dropped, want %d", got, len(messages))
	}
	if got, want := r.stats(), (ipc.Stats{Received: 1, Completed: 1}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// A request of which the id can be read is answered, so that nobody waits for it.
func TestHostile_UnreadableRequestsEndWithAnError(t *testing.T) {
	r, f := joinRaw(t, nil)
	bad := msgp.AppendArrayHeader(nil, 6)
	bad = msgp.AppendString(bad, "half")
	bad = msgp.AppendString(bad, "not a list of tokens")
	for range 4 {
		bad = msgp.AppendNil(bad)
	}
	f.send([]byte{enginecore.FrameAdd}, bad)
	got := f.next()
	if o := got.Requests[0]; string(o.ID) != "half" || o.Finish != enginecore.FinishError || len(got.Finished) != 1 {
		t.Errorf("output %q, finish %v, finished_requests %v, want half, error, and it", o.ID, o.Finish, got.Finished)
	}
	if got, want := r.stats(), (ipc.Stats{Received: 1, Failed: 1}); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// A frontend that breaks the handshake is asked again.
func TestHostile_Handshake(t *testing.T) {
	f := newRawFrontend(t)
	r := emptyRig(t)
	r.address = f.handshake.Address()
	r.start(t, rigOptions{}, nil)
	for _, init := range [][][]byte{
		{{0xc1}},
		{{0x80}},
		{{0x80}, {0x80}},
		{enginecore.AppendInit(nil, enginecore.Init{Inputs: []string{f.input.Address()}, Outputs: []string{"tcp://nowhere"}})},
	} {
		identity, _, err := f.handshake.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if err := f.handshake.Send(bytes.Clone(identity), init...); err != nil {
			t.Fatal(err)
		}
	}
	f.join()
	r.awaitState(ipc.StateReady)
}

// A frontend that answers HELLO and goes, with its data sockets, is not waited for.
func TestHostile_HandshakeLeftInTheMiddle(t *testing.T) {
	r := emptyRig(t)
	r.address = unusedAddress(t)
	first, err := zmtp.ListenRouter(r.address, zmtp.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.start(t, rigOptions{}, nil)
	identity, _, err := first.Recv()
	if err != nil {
		t.Fatal(err)
	}
	init := enginecore.AppendInit(nil, enginecore.Init{Inputs: []string{"tcp://127.0.0.1:1"}, Outputs: []string{"tcp://127.0.0.1:1"}})
	if err := first.Send(identity, init); err != nil {
		t.Fatal(err)
	}
	if err := first.Close(timeout(t)); err != nil {
		t.Fatal(err)
	}
	r.frontend = r.listen(t, r.address, rigOptions{})
	r.awaitState(ipc.StateReady)
}

// breakInput is a broken invariant of ours.
type breakInput struct{}

func (breakInput) apply(*loop, engine.Time) { panic("broken on purpose") }

func TestPanic_TellsEveryClientThatTheEngineIsDead(t *testing.T) {
	l := newTestLoop(t)
	frontend := newRawFrontend(t)
	var conns []*zmtp.Conn
	for range 2 {
		conn, err := zmtp.Dial(timeout(t), frontend.output.Address(), zmtp.Options{Type: zmtp.Push})
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	ended := make(chan error, 1)
	go func() { ended <- l.run(context.Background()) }()
	l.send(timeout(t), connectedInput{outs: conns})
	l.send(timeout(t), breakInput{})

	var broken *PanicError
	if err := <-ended; !errors.As(err, &broken) || !bytes.Contains(broken.Stack, []byte("breakInput")) {
		t.Errorf("the loop ended with %v, want a PanicError that names the place", err)
	}
	for _, conn := range conns {
		if err := conn.Close(timeout(t)); err != nil {
			t.Error(err)
		}
	}
	for range conns {
		frames, err := frontend.output.Recv()
		if err != nil || len(frames) != 1 || string(frames[0]) != enginecore.EngineCoreDead {
			t.Errorf("got %q, %v, want %s", frames, err, enginecore.EngineCoreDead)
		}
	}
}

// newTestLoop returns the loop of an engine with no process around it.
func newTestLoop(t *testing.T) *loop {
	t.Helper()
	page, file, err := ipc.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	root := logs.New(&syncBuffer{}, logs.JSON, logs.Filter{})
	l, err := newLoop(ipc.Start{Config: config.Default()}, Env{Page: page}, func(ipc.State) {}, root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		l.alarm.close()
		_ = root.Close()
		_ = page.Close()
	})
	return l
}
