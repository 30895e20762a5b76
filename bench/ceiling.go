package main

import (
	"context"
	"fmt"
	"time"

	"vllm-vcr/protocol/zmtp"
)

// ceiling is what the transport alone can do.
type ceiling struct {
	messages      float64 // per second
	cpuPerMessage float64 // seconds, of both ends
}

// Marks of the bare sender: enough for the writer never to run dry.
const (
	ceilingHigh = 8 << 20
	ceilingLow  = 4 << 20
)

// measureCeiling sends messages of that many bytes from a PUSH to a PULL connection in this process, which reads and drops
// them.
func measureCeiling(ctx context.Context, bytes int, d time.Duration) (ceiling, error) {
	pull, err := zmtp.ListenPull("tcp://127.0.0.1:0", zmtp.Options{})
	if err != nil {
		return ceiling{}, err
	}
	received := make(chan int, 1) // written once, when the sink has ended
	go func() {
		n := 0
		for {
			if _, err := pull.Recv(); err != nil {
				received <- n
				return
			}
			n++
		}
	}()
	start, cpu := time.Now(), ownCPU()
	err = flood(ctx, pull.Address(), make([]byte, bytes), d)
	_ = pull.Close() // what is on its way doesn't count
	n := <-received
	took := time.Since(start)
	if err == nil && n == 0 {
		err = errNothing
	}
	if err != nil {
		return ceiling{}, fmt.Errorf("bare sockets: messages of %d bytes: %w", bytes, err)
	}
	return ceiling{messages: perSecond(uint64(n), took), cpuPerMessage: (ownCPU() - cpu).Seconds() / float64(n)}, nil
}

// flood sends as fast as the peer reads.
func flood(ctx context.Context, address string, message []byte, d time.Duration) error {
	roomC := make(chan struct{}, 1) // a word of the writer's that nobody took yet stands for all later ones
	conn, err := zmtp.Dial(ctx, address, zmtp.Options{
		Type: zmtp.Push, HighWater: ceilingHigh, LowWater: ceilingLow,
		OnLowWater: func() {
			select {
			case roomC <- struct{}{}:
			default:
			}
		},
	})
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for end := time.Now().Add(d); time.Now().Before(end); {
		if err := conn.Send(message); err != nil {
			return err
		}
		if conn.Queued() < ceilingHigh {
			continue
		}
		select {
		case <-roomC:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}
