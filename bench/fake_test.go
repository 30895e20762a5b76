package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// fakeEngine is an engine command that answers every request at once with one output. Its arguments are the handshake
// address, the number of engines, the control address ("" = none) and a behaviour. It ends by SIGTERM.
func fakeEngine(args []string) int {
	handshake, control, behaviour := args[0], args[2], args[3]
	engines, err := strconv.Atoi(args[1])
	if err != nil || behaviour == "crash" {
		fmt.Fprint(os.Stderr, "I crash")
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if control != "" {
		go http.ListenAndServe(control, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	}
	var running sync.WaitGroup
	for rank := range engines {
		running.Go(func() {
			e := fakeOne{rank: rank, behaviour: behaviour, clock: newClock()}
			if err := e.run(ctx, handshake); err != nil && ctx.Err() == nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		})
	}
	running.Wait()
	return 0
}

type fakeOne struct {
	rank      int
	behaviour string
	clock     clock
	joined
	batch enginecore.Batch
}

// run joins and serves until ctx ends.
func (e *fakeOne) run(ctx context.Context, handshake string) error {
	var err error
	if e.joined, err = join(ctx, handshake, e.rank, zmtp.Options{}); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = e.in.Close(ctx) })()
	return e.serve(ctx)
}

func (e *fakeOne) serve(ctx context.Context) error {
	var r enginecore.Request
	for {
		frames, err := e.in.Recv()
		if err != nil {
			return err
		}
		if err := enginecore.DecodeRequest(frames[1], &r); err != nil {
			return err
		}
		if e.behaviour == "leave" {
			_ = e.in.Close(ctx)
			<-ctx.Done()
		}
		if err := e.out.Send(e.answer(&r)); err != nil {
			return err
		}
	}
}

// answer is right unless the behaviour says otherwise.
func (e *fakeOne) answer(r *enginecore.Request) []byte {
	now := e.clock.now().Seconds()
	o := enginecore.Output{
		Tokens: make([]uint32, r.Sampling.MaxTokens),
		Finish: enginecore.FinishLength,
		Events: []enginecore.Event{{Type: enginecore.EventScheduled, Time: now}},
	}
	id := r.ID
	switch e.behaviour {
	case "short":
		o.Tokens = o.Tokens[1:]
	case "abort":
		o.Finish = enginecore.FinishAbort
	case "stray":
		id = "nobody's"
	case "dead":
		return []byte(enginecore.EngineCoreDead)
	case "babble":
		return []byte("babble")
	}
	e.batch.Reset(enginecore.Version{}, uint32(e.rank))
	e.batch.Add(enginecore.EncodeID(id), &o)
	return e.batch.Finish(nil, now)
}
