package worker

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"vllm-vcr/config"
	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience bounds every wait of a test for something that is sure to come.
const patience = 10 * time.Second

// rig is a worker in this process between a frontend and a supervisor, both played by the test.
type rig struct {
	t        *testing.T
	frontend *engineclient.Frontend
	address  string // of the frontend's handshake
	outputs  *collector
	page     *ipc.Page
	conn     net.Conn // the supervisor's end
	signals  chan os.Signal
	log      *syncBuffer
	stopped  chan error    // what Run returned
	crashed  chan struct{} // closed where the process was to crash

	mu      sync.Mutex
	changed *sync.Cond
	states  []ipc.State
	answers map[uint64]ipc.Answer
	number  uint64
}

// rigOptions are what a test changes of the ordinary.
type rigOptions struct {
	clients     int
	coordinator bool
	version     string
	change      func(*config.Config)
	report      func(*enginecore.Outputs)
	faults      []ipc.ArmedFault // that are armed at the start
	up          func(rank int, r enginecore.ReadyResponse)
	lost        func(rank int, err error)
}

// newRig starts a worker and waits until it has joined.
func newRig(t *testing.T, o rigOptions) *rig {
	t.Helper()
	r := emptyRig(t)
	r.address = unusedAddress(t)
	r.frontend = r.listen(t, r.address, o)
	r.start(t, o, nil)
	r.awaitState(ipc.StateReady)
	if err := r.frontend.Ready(timeout(t)); err != nil {
		t.Fatal(err)
	}
	return r
}

func emptyRig(t *testing.T) *rig {
	r := &rig{
		t: t, outputs: newCollector(t), signals: make(chan os.Signal, 2),
		log: &syncBuffer{}, stopped: make(chan error, 1), crashed: make(chan struct{}), answers: map[uint64]ipc.Answer{},
	}
	r.changed = sync.NewCond(&r.mu)
	return r
}

func (r *rig) listen(t *testing.T, address string, o rigOptions) *engineclient.Frontend {
	t.Helper()
	f, err := engineclient.Listen(engineclient.Options{
		Handshake: address, Engines: 1, Clients: o.clients, Version: r.version(o), Coordinator: o.coordinator, KeepHandshake: true,
		Events: engineclient.Events{Outputs: r.outputs.take, Report: o.report, Up: o.up, Lost: o.lost, Dead: r.outputs.dead},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close(expired()) })
	return f
}

func (r *rig) version(o rigOptions) enginecore.Version {
	if o.version == "" {
		return enginecore.Version{}
	}
	v, err := enginecore.ParseVersion(o.version)
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// start runs the worker and the supervisor's side of its socket.
func (r *rig) start(t *testing.T, o rigOptions, predecessor *ipc.Addresses) {
	t.Helper()
	page, file, err := ipc.NewPage()
	if err != nil {
		t.Fatal(err)
	}
	_ = file.Close()
	cfg := config.Default()
	cfg.HandshakeAddress = r.address
	if o.version != "" {
		cfg.VLLMVersion = o.version
	}
	if o.change != nil {
		o.change(&cfg)
	}
	ours, theirs := net.Pipe()
	r.conn, r.page = ours, page
	go func() {
		r.stopped <- Run(Env{Supervisor: theirs, Page: page, Stderr: r.log, Signals: r.signals, Crash: func() { close(r.crashed) }})
	}()
	r.write(ipc.KindStart, 0, ipc.Start{
		Magic: ipc.Magic, Version: ipc.Version, Config: cfg, LogFilter: "vllm_vcr=debug", Addresses: predecessor, Faults: o.faults,
	})
	reading := make(chan struct{})
	go func() { defer close(reading); r.read(ours) }()
	t.Cleanup(func() {
		_ = ours.Close()
		<-reading
		r.awaitStopped()
		_ = page.Close()
		if t.Failed() {
			log := r.log.String()
			t.Logf("end of the worker's log:\n%s", log[max(0, len(log)-2000):])
		}
	})
}

func (r *rig) write(kind ipc.Kind, number uint64, body any) {
	r.t.Helper()
	frame, err := ipc.Append(nil, kind, number, body)
	if err == nil {
		_, err = r.conn.Write(frame)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) read(conn net.Conn) {
	for {
		f, _, err := ipc.ReadFrame(conn, nil)
		if err != nil {
			return
		}
		r.mu.Lock()
		switch f.Kind {
		case ipc.KindState:
			var s ipc.State
			r.check(f.Decode(&s))
			r.states = append(r.states, s)
		case ipc.KindAnswer:
			var a ipc.Answer
			r.check(f.Decode(&a))
			r.answers[f.Call] = a
		}
		r.changed.Broadcast()
		r.mu.Unlock()
	}
}

func (r *rig) check(err error) {
	if err != nil {
		r.t.Error(err)
	}
}

// call asks the worker and waits for its answer.
func (r *rig) call(c ipc.Call) ipc.Answer {
	r.t.Helper()
	r.mu.Lock()
	r.number++
	number := r.number
	r.mu.Unlock()
	r.write(ipc.KindCall, number, c)
	r.await(fmt.Sprintf("answer to %s", c.Op), func() bool { _, ok := r.answers[number]; return ok })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.answers[number]
}

func (r *rig) stats() ipc.Stats {
	r.t.Helper()
	return *r.call(ipc.Call{Op: ipc.OpStats}).Stats
}

// patch takes a change through both rounds.
func (r *rig) patch(number uint64, p config.Patch) config.Live {
	r.t.Helper()
	if a := r.call(ipc.Call{Op: ipc.OpPrepare, Change: number, Patch: p}); a.Refused != "" {
		r.t.Fatalf("patch refused: %s", a.Refused)
	}
	return *r.call(ipc.Call{Op: ipc.OpCommit, Change: number}).Config
}

// arm takes a fault through both rounds, under its id as the number of the change.
func (r *rig) arm(f ipc.Fault) {
	r.t.Helper()
	armed := ipc.ArmedFault{Fault: f, Slot: int(f.ID) % ipc.MaxFaults}
	if a := r.call(ipc.Call{Op: ipc.OpPrepare, Change: f.ID, Arm: &armed}); a.Refused != "" {
		r.t.Fatalf("fault refused: %s", a.Refused)
	}
	r.write(ipc.KindCall, 0, ipc.Call{Op: ipc.OpCommit, Change: f.ID})
}

// disarm takes a fault back and waits until it is.
func (r *rig) disarm(change uint64, ids ...uint64) {
	r.t.Helper()
	r.call(ipc.Call{Op: ipc.OpCommit, Change: change, Disarm: ids})
}

// awaitState waits until the worker's last word on itself is state.
func (r *rig) awaitState(state string) ipc.State {
	r.t.Helper()
	r.await("state "+state, func() bool { return len(r.states) > 0 && r.states[len(r.states)-1].State == state })
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.states[len(r.states)-1]
}

func (r *rig) await(what string, done func() bool) {
	r.t.Helper()
	if !awaitCond(r.changed, done) {
		r.t.Fatalf("no %s within %v; states %v", what, patience, r.states)
	}
}

// awaitStopped returns what Run returned, each time it is called.
func (r *rig) awaitStopped() error {
	r.t.Helper()
	select {
	case err := <-r.stopped:
		r.stopped <- err
		return err
	case <-time.After(patience):
		r.t.Errorf("the worker runs on")
		return nil
	}
}

func (r *rig) terminate() { r.signals <- syscall.SIGTERM }

func (r *rig) add(req enginecore.Request) {
	r.t.Helper()
	if err := r.frontend.Client(int(req.ClientIndex)).Add(0, &req); err != nil {
		r.t.Fatal(err)
	}
}

// request asks for n tokens after a prompt of four.
func request(id string, n uint32) enginecore.Request {
	s := enginecore.DefaultSampling()
	s.MaxTokens = n
	return enginecore.Request{ID: id, PromptTokens: []uint32{1, 2, 3, 4}, Sampling: &s}
}

// awaitCond waits with c's lock until done, for at most the time that tests have patience.
func awaitCond(c *sync.Cond, done func() bool) bool {
	late := false
	timer := time.AfterFunc(patience, func() {
		c.L.Lock()
		late = true
		c.L.Unlock()
		c.Broadcast()
	})
	defer timer.Stop()
	c.L.Lock()
	defer c.L.Unlock()
	for !done() {
		if late {
			return false
		}
		c.Wait()
	}
	return true
}

// syncBuffer is a log that may be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func timeout(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// unusedAddress is one that a frontend can come back to: outside of the range from which the kernel gives ports to sockets
// that dial.
func unusedAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 20_000+rand.IntN(10_000))
		if ln, err := net.Listen("tcp", address); err == nil {
			_ = ln.Close()
			return "tcp://" + address
		}
	}
	t.Fatal("no unused port found")
	return ""
}
