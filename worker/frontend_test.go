package worker

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"vllm-vcr/config"
	"vllm-vcr/ipc"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

func TestFrontend_LostAndBackOnOtherPorts(t *testing.T) {
	o := rigOptions{change: func(c *config.Config) { c.TimeToFirstToken, c.MaxNumSeqs = 60_000, 1 }}
	r := newRig(t, o)
	r.add(request("running", 1))
	r.add(request("waiting", 1))
	r.awaitCounted(2)
	if err := r.frontend.Close(expired()); err != nil {
		t.Log(err)
	}
	r.awaitState(ipc.StateReconnecting)
	if got, want := r.stats(), (ipc.Stats{Received: 2, Aborted: 2}); got != want {
		t.Errorf("stats after the loss %+v, want %+v", got, want)
	}
	r.patch(1, config.Patch{{Key: "time_to_first_token", Raw: "0"}})

	r.frontend = r.listen(t, r.address, o)
	if s := r.awaitState(ipc.StateReady); s.Joined != joinedByHandshake {
		t.Errorf("joined by %q, want %q", s.Joined, joinedByHandshake)
	}
	if err := r.frontend.Ready(timeout(t)); err != nil {
		t.Fatal(err)
	}
	r.add(request("again", 3))
	if got := r.outputs.awaitEnd("again"); len(got.tokens) != 3 {
		t.Errorf("%d tokens, want 3", len(got.tokens))
	}
}

// A frontend that is started again at the very same addresses goes through the whole handshake, though the engine finds its
// data sockets by itself.
func TestFrontend_BackAtTheSameAddresses(t *testing.T) {
	handshake, input, output := unusedAddress(t), unusedAddress(t), unusedAddress(t)
	first := newRawFrontendAt(t, handshake, input, output)
	r := emptyRig(t)
	r.address = handshake
	r.start(t, rigOptions{}, nil)
	first.join()
	r.awaitState(ipc.StateReady)
	for range 10 {
		first.close()
		r.awaitState(ipc.StateReconnecting)
		second := newRawFrontendAt(t, handshake, input, output)
		second.join()
		req := request("a", 2)
		second.send([]byte{enginecore.FrameAdd}, enginecore.AppendRequest(nil, enginecore.Version{}, &req))
		if got := second.next(); string(got.Requests[0].ID) != "a" {
			t.Errorf("output of %q, want a", got.Requests[0].ID)
		}
		first = second
	}
}

// A worker that follows another gets in at its predecessor's addresses where the handshake is closed.
func TestFrontend_PredecessorsAddresses(t *testing.T) {
	o := rigOptions{}
	first := newRig(t, o)
	addresses := first.awaitState(ipc.StateReady).Addresses
	first.terminate()
	if err := first.awaitStopped(); err != nil {
		t.Fatal(err)
	}
	second := emptyRig(t)
	second.frontend, second.outputs = first.frontend, first.outputs
	second.address = "tcp://127.0.0.1:1"
	second.start(t, o, addresses)
	if s := second.awaitState(ipc.StateReady); s.Joined != joinedByAddresses {
		t.Errorf("joined by %q, want %q", s.Joined, joinedByAddresses)
	}
	second.outputs.await("registration", func() bool { _, ok := second.frontend.Registration(0); return ok })
	second.addWhenTaken(request("a", 3))
	if got := second.outputs.awaitEnd("a"); len(got.tokens) != 3 {
		t.Errorf("%d tokens, want 3", len(got.tokens))
	}
}

// A worker that gets in at its predecessor's addresses and is invited there at the same moment registers once: a second connection would
// take the place of one over which requests may be on their way.
func TestFrontend_PredecessorsAddressesAndHandshake(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(8)) // else the moments hardly ever meet
	changes := make(chan error, 100)                // nil = it is up
	o := rigOptions{
		up:   func(int, enginecore.ReadyResponse) { changes <- nil },
		lost: func(_ int, err error) { changes <- err },
	}
	first := newRig(t, o)
	addresses := first.awaitState(ipc.StateReady).Addresses
	r := first
	for range 100 {
		r.await("handshake", func() bool { return len(r.states) > 0 && r.states[len(r.states)-1].Joined == joinedByHandshake })
		awaitChange(t, changes, true)
		r.terminate()
		if err := r.awaitStopped(); err != nil {
			t.Fatal(err)
		}
		awaitChange(t, changes, false)
		r = emptyRig(t)
		r.frontend, r.outputs, r.address = first.frontend, first.outputs, first.address
		r.start(t, o, addresses)
	}
}

// awaitChange waits for a frontend to see that its engine is up, or gone, and not for the sake of another connection.
func awaitChange(t *testing.T, changes <-chan error, up bool) {
	t.Helper()
	select {
	case err := <-changes:
		if up != (err == nil) || errors.Is(err, zmtp.ErrReplaced) {
			t.Fatalf("the frontend sees %v, want that the engine is up %t", err, up)
		}
	case <-timeout(t).Done():
		t.Fatalf("the frontend does not see that the engine is up %t", up)
	}
}

// addWhenTaken adds a request once the frontend has taken the engine's registration.
func (r *rig) addWhenTaken(req enginecore.Request) {
	r.t.Helper()
	for ctx := timeout(r.t); ; {
		err := r.frontend.Client(int(req.ClientIndex)).Add(0, &req)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			r.t.Fatal(err)
		}
	}
}

func TestFrontend_Registers(t *testing.T) {
	for _, version := range []string{"0.25", "0.27.1", "0.33"} {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, rigOptions{version: version, change: func(c *config.Config) {
				c.MaxModelLen, c.MaxNumSeqs, c.MaxNumBatchedTokens, c.KVCacheSize, c.TokensPerBlock, c.EngineID = 4096, 7, 99, 100, 32, "me"
			}})
			got, ok := r.frontend.Registration(0)
			if !ok {
				t.Fatal("no registration")
			}
			if got.MaxModelLen != 4096 || got.MaxNumSeqs != 7 || got.MaxNumBatchedTokens != 99 || got.GPUBlocks != 100 || got.BlockSize != 32 || got.InstanceID != "me" {
				t.Errorf("registration %+v", got)
			}
			if !strings.HasPrefix(got.Version, version[:4]) || got.KVCacheTokens != enginecore.Some(uint64(3200)) || got.KVCacheConcurrency != enginecore.Some(3200.0/4096) {
				t.Errorf("version %s, cache tokens %v, concurrency %v", got.Version, got.KVCacheTokens, got.KVCacheConcurrency)
			}
		})
	}
}

func TestFrontend_EachClientGetsItsOwn(t *testing.T) {
	r := newRig(t, rigOptions{clients: 3, change: func(c *config.Config) { c.InterTokenLatency = 1 }})
	for client, id := range []string{"a", "b", "c"} {
		req := request(id, 5)
		req.ClientIndex = uint32(client)
		r.add(req)
	}
	for client, id := range []string{"a", "b", "c"} {
		if got := r.outputs.awaitEnd(id); got.client != client || len(got.tokens) != 5 {
			t.Errorf("%s: client %d with %d tokens, want client %d with 5", id, got.client, len(got.tokens), client)
		}
	}
	r.outputs.mu.Lock()
	defer r.outputs.mu.Unlock()
	for _, client := range r.outputs.statsOf {
		if client != 0 {
			t.Errorf("stats went to client %d, want all at client 0", client)
		}
	}
}

func TestFrontend_TellsACoordinatorOfItsLoad(t *testing.T) {
	reports := make(chan enginecore.SchedulerStats, 100)
	r := newRig(t, rigOptions{
		clients: 2, coordinator: true,
		change: func(c *config.Config) { c.TimeToFirstToken, c.MaxNumSeqs = 60_000, 1 },
		report: func(o *enginecore.Outputs) {
			if o.Stats != nil {
				reports <- *o.Stats
			}
		},
	})
	r.add(request("a", 1))
	r.add(request("b", 1))
	awaitReport(t, reports, 1, 1)
	if err := r.frontend.Client(0).Abort(0, "a", "b"); err != nil {
		t.Fatal(err)
	}
	awaitReport(t, reports, 0, 0)
	// What a coordinator broadcasts to engines that step together means nothing to independent ones.
	if err := r.frontend.StartWave(enginecore.StartWave{Wave: 3}); err != nil {
		t.Fatal(err)
	}
	if got := r.stats(); got.Received != 2 || got.Aborted != 2 {
		t.Errorf("stats %+v, want 2 received and aborted", got)
	}
}

func awaitReport(t *testing.T, reports <-chan enginecore.SchedulerStats, running, waiting uint64) {
	t.Helper()
	for ctx := timeout(t); ; {
		select {
		case s := <-reports:
			if s.Running == running && s.Waiting == waiting {
				return
			}
		case <-ctx.Done():
			t.Fatalf("no report of %d running and %d waiting within %v", running, waiting, patience)
		}
	}
}
