package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"time"

	"vllm-vcr/frontend/engineclient"
)

// joinTimeout is how long engines have to come up.
const joinTimeout = 60 * time.Second

// rig is an engine command behind a frontend of ours.
type rig struct {
	frontend *engineclient.Frontend
	engine   *process
	control  string // HOST:PORT; "" = none
}

// build opens a frontend, starts the engine command, and waits until all engines are up. The rig is to be closed.
func build(ctx context.Context, t target, s setup, events engineclient.Events) (*rig, error) {
	f, err := engineclient.Listen(engineclient.Options{Handshake: "tcp://127.0.0.1:0", Engines: s.engines, Events: events})
	if err != nil {
		return nil, err
	}
	r := &rig{frontend: f, control: s.control}
	if r.engine, err = startProcess(t.argv(s, f.Handshake())); err != nil {
		r.close()
		return nil, err
	}
	if err := r.ready(ctx); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// ready waits until all engines are up or the command has ended.
func (r *rig) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	ended := make(chan struct{})
	defer func() { <-ended }()
	go func() {
		defer close(ended)
		select {
		case <-r.engine.doneC:
			cancel()
		case <-ctx.Done():
		}
	}()
	err := r.frontend.Ready(ctx)
	cancel()
	if err != nil {
		return errors.Join(err, r.engine.ended())
	}
	return nil
}

// close ends the engine and then the frontend.
func (r *rig) close() {
	if r.engine != nil {
		r.engine.stop()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_ = r.frontend.Close(ctx) // nobody is there to be sent to
}

// freePort is a HOST:PORT of this machine that nobody listened on a moment ago, for a command that can't be told to choose
// one itself. It lies below the range that the kernel hands out by itself (32768 and up, ip(7)), so that no listener at
// port 0 and no connection made before the command has bound it takes it away.
func freePort() (string, error) {
	const attempts = 100
	var err error
	for range attempts {
		var ln net.Listener
		if ln, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))); err == nil {
			return ln.Addr().String(), ln.Close()
		}
	}
	return "", fmt.Errorf("find a free port between 20000 and 32000: %w", err)
}
