package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// limitArg makes bench an engine command that does nothing but what no engine can do without: see limitEngine. Its arguments
// are the handshake address, the number of engines and the rank of the first.
const limitArg = "limit-engine"

// limitName is what the table calls it.
const limitName = "limit"

// limitTarget is the command, or nothing where this program can't find itself.
func limitTarget() (target, bool) {
	self, err := os.Executable()
	return target{name: limitName, command: []string{self, limitArg, "{handshake}", "{engines}", "0"}}, err == nil
}

// runLimit runs one engine in this process, or each of several in a process of its own.
func runLimit(ctx context.Context, args []string) error {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	if len(args) != 3 {
		return fmt.Errorf("%s: %d arguments, want an address, a number of engines and a rank", limitArg, len(args))
	}
	engines, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	rank, err := strconv.Atoi(args[2])
	if err != nil {
		return err
	}
	if engines == 1 {
		return runLimitEngine(ctx, args[0], rank)
	}
	return limitProcesses(ctx, args[0], engines)
}

func limitProcesses(ctx context.Context, handshake string, engines int) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for rank := range engines {
		cmd := exec.CommandContext(ctx, self, limitArg, handshake, "1", strconv.Itoa(rank))
		cmd.Stderr = os.Stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		defer func() { _ = cmd.Wait() }() // it is killed when ctx ends
	}
	<-ctx.Done()
	return nil
}

// limitEngine is the limit of what an engine of this protocol can do with these packages: each request is decoded, and each
// step puts one token into an output of every request that runs. There is no admission, no time, no token source and no count.
type limitEngine struct {
	joined
	arrivals chan limitRequest
	room     chan struct{} // capacity 1: the frontend has read on
	running  []limitRequest
	batch    enginecore.Batch
	rank     uint32
	clock    clock
}

type limitRequest struct {
	id   enginecore.EncodedID
	left uint32
}

// limitToken is the token of every output.
var limitToken = []uint32{1000}

func runLimitEngine(ctx context.Context, handshake string, rank int) error {
	e := &limitEngine{arrivals: make(chan limitRequest, 1024), room: make(chan struct{}, 1), rank: uint32(rank), clock: newClock()}
	var err error
	e.joined, err = join(ctx, handshake, rank, zmtp.Options{HighWater: ceilingHigh, LowWater: ceilingLow, OnLowWater: func() {
		select {
		case e.room <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		return err
	}
	defer e.close(ctx)
	go e.read() // ends with the connection
	for e.takeArrivals(ctx) {
		if err := e.step(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (e *limitEngine) read() {
	defer close(e.arrivals)
	var r enginecore.Request
	for {
		frames, err := e.in.Recv()
		if err != nil || len(frames) < 2 || enginecore.DecodeRequest(frames[1], &r) != nil {
			return
		}
		e.arrivals <- limitRequest{enginecore.EncodeID(r.ID), r.Sampling.MaxTokens}
	}
}

// takeArrivals takes what is there, and waits where nothing runs. It reports false at the end.
func (e *limitEngine) takeArrivals(ctx context.Context) bool {
	for {
		if len(e.running) == 0 {
			select {
			case r, ok := <-e.arrivals:
				if !ok {
					return false
				}
				e.running = append(e.running, r)
			case <-ctx.Done():
				return false
			}
		}
		select {
		case r, ok := <-e.arrivals:
			if !ok {
				return false
			}
			e.running = append(e.running, r)
		default:
			return true
		}
	}
}

func (e *limitEngine) step(ctx context.Context) error {
	e.batch.Reset(enginecore.Version{}, e.rank)
	still := e.running[:0]
	for _, r := range e.running {
		if r.left--; r.left > 0 {
			e.batch.Token(r.id, limitToken)
			still = append(still, r)
			continue
		}
		e.batch.Add(r.id, &enginecore.Output{Tokens: limitToken, Finish: enginecore.FinishLength})
		e.batch.Finished(r.id)
	}
	e.running = still
	if err := e.out.Send(e.batch.Finish(nil, e.clock.now().Seconds())); err != nil {
		return err
	}
	if e.out.Queued() < ceilingHigh {
		return nil
	}
	select {
	case <-e.room:
	case <-ctx.Done():
	}
	return nil
}
