package main

import (
	"context"
	"errors"
	"fmt"
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

// freePort is a HOST:PORT of this machine that nobody listens on, for a command that can't be told to choose one itself.
func freePort() (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free port: %w", err)
	}
	defer ln.Close()
	return ln.Addr().String(), nil
}
