package model

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"vllm-vcr/config"
	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/ipc"
	"vllm-vcr/logs"
	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/supervisor"
)

// patience is how long anything may take that must come.
const patience = 60 * time.Second

// rig is a supervisor, its workers, and the frontend they joined. Several histories may be played on it, one after the other.
type rig struct {
	*supervisor.Fleet
	witness  *witness
	frontend *engineclient.Frontend
	client   *engineclient.Client
	signals  chan os.Signal
	log      *text
	root     *logs.Root
	endedC   chan struct{} // closed when the fleet has stopped
	err      error         // of the fleet, after endedC
	numbers  int           // requests so far
	engines  []*engine
}

// text is what was logged.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *text) Write(b []byte) (int, error) { l.mu.Lock(); defer l.mu.Unlock(); return l.b.Write(b) }
func (l *text) String() string              { l.mu.Lock(); defer l.mu.Unlock(); return l.b.String() }

// raise starts a fleet and waits until all of it has joined.
func raise(t *testing.T, engines int, shutdown uint64) *rig {
	t.Helper()
	r := &rig{witness: newWitness(), signals: make(chan os.Signal, 2), log: &text{}, endedC: make(chan struct{})}
	var err error
	r.frontend, err = engineclient.Listen(engineclient.Options{
		Handshake: "tcp://127.0.0.1:0", Engines: engines, KeepHandshake: true, Events: r.witness.events(),
	})
	if err != nil {
		t.Fatal(err)
	}
	r.client = r.frontend.Client(0)
	r.start(t, engines, shutdown)
	ctx, cancel := soon()
	defer cancel()
	if err := r.frontend.Ready(ctx); err != nil {
		t.Fatalf("%v; log:\n%s", err, r.log)
	}
	r.await(t, "the fleet is ready", func() bool { return r.Health(ctx).Status == supervisor.HealthOK })
	return r
}

func (r *rig) start(t *testing.T, engines int, shutdown uint64) {
	t.Helper()
	cfg := config.Default()
	cfg.EngineCount, cfg.HandshakeAddress, cfg.Restart = uint64(engines), r.frontend.Handshake(), config.RestartOnFailure
	cfg.ShutdownTimeout = shutdown
	filter, err := logs.ParseFilter("info,vllm_vcr::engine_core=error,vllm_vcr::io=off")
	if err != nil {
		t.Fatal(err)
	}
	r.root = logs.New(r.log, logs.JSON, filter)
	r.Fleet, err = supervisor.New(cfg, supervisor.Options{Signals: r.signals, Log: r.root, LogFormat: logs.JSON, Command: command})
	if err != nil {
		t.Fatal(err)
	}
	for range engines {
		r.engines = append(r.engines, &engine{live: cfg.Live.Clone(), launched: cfg.Live.Clone()})
	}
	go func() {
		defer close(r.endedC)
		r.err = r.Run()
	}()
}

func soon() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), patience)
}

// await waits until ok, which is looked at whenever the client has seen something, and every few milliseconds for what it can't see.
func (r *rig) await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.Now().Add(patience); !ok(); {
		select {
		case <-r.witness.changedC:
		case <-tick.C:
		}
		if time.Now().After(deadline) {
			t.Fatalf("not so after %v: %s; log:\n%s", patience, what, r.log)
		}
	}
}

// end stops the fleet, if it hasn't stopped, and waits for it.
func (r *rig) end(t *testing.T) {
	t.Helper()
	r.Stop(nil)
	select {
	case <-r.endedC:
	case <-time.After(patience):
		t.Fatalf("the fleet has not ended in %v; log:\n%s", patience, r.log)
	}
	if r.err != nil {
		t.Errorf("fleet: %v", r.err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.frontend.Close(ctx) // nobody is there to be sent to
	_ = r.root.Close()        // the log is a buffer
}

// ledger is what the fleet said of its books at its end.
func (r *rig) ledger(t *testing.T) (s ipc.Stats, lost uint64) {
	t.Helper()
	for line := range bytes.Lines([]byte(r.log.String())) {
		var said struct {
			Message                                    string
			Received, Completed, Failed, Aborted, Lost uint64
		}
		if err := json.Unmarshal(line, &said); err != nil {
			t.Fatalf("log line %q: %v", line, err)
		}
		if said.Message == "fleet stopped" {
			return ipc.Stats{Received: said.Received, Completed: said.Completed, Failed: said.Failed, Aborted: said.Aborted}, said.Lost
		}
	}
	t.Fatalf("the log has no ledger:\n%s", r.log)
	return s, 0
}

// add sends a request. It reports false where the engine isn't there.
func (r *rig) add(rank int, q *request) bool {
	if q.broken {
		return r.client.AddEncoded(rank, broken(q.id)) == nil
	}
	sampling := enginecore.DefaultSampling()
	sampling.MaxTokens, sampling.IgnoreEOS = q.tokens, true
	return r.client.Add(rank, &enginecore.Request{ID: q.id, PromptTokens: make([]uint32, q.prompt), Sampling: &sampling}) == nil
}
