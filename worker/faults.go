package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"vllm-vcr/ipc"
	"vllm-vcr/worker/engine"
)

// errCrashed is what a loop ends with whose process outlives its crash.
var errCrashed = errors.New("crashed, as a fault has it")

// crashFlush bounds the time in which the outputs of before a crash leave.
const crashFlush = time.Second

// faultKinds translates the words of package ipc.
var faultKinds = map[string]engine.FaultKind{
	ipc.FaultError:         engine.FaultError,
	ipc.FaultLength:        engine.FaultLength,
	ipc.FaultRepetition:    engine.FaultRepetition,
	ipc.FaultStall:         engine.FaultStall,
	ipc.FaultCrash:         engine.FaultCrash,
	ipc.FaultHang:          engine.FaultHang,
	ipc.FaultSlowHandshake: engine.FaultSlowHandshake,
}

// faults are those that the supervisor has armed, each in its slot of the page.
type faults struct {
	slots [ipc.MaxFaults]struct {
		id    uint64
		fault *engine.Fault // nil = none
	}
	published [engine.FaultKinds]uint64
}

// checkFault says why there can be no such fault, or "".
func checkFault(f *ipc.ArmedFault) string {
	if f == nil {
		return ""
	}
	if _, ok := faultKinds[f.Kind]; !ok || f.Slot < 0 || f.Slot >= ipc.MaxFaults {
		return fmt.Sprintf("fault of kind %q in slot %d is not known", f.Kind, f.Slot)
	}
	return ""
}

// arm puts a fault in force in place of the one that had its slot, which the supervisor has forgotten.
func (l *loop) arm(now engine.Time, f ipc.ArmedFault) {
	slot := &l.faults.slots[f.Slot]
	if slot.fault != nil {
		l.engine.Disarm(now, slot.fault)
	}
	slot.id, slot.fault = f.ID, &engine.Fault{
		Kind:     faultKinds[f.Kind],
		Count:    f.Count,
		Duration: engine.Milliseconds(f.Duration),
		Delay:    engine.Milliseconds(f.Delay),
		AtOnce:   f.AtOnce(),
		Applied:  l.page.Arm(f),
	}
	if f.AfterTokens != nil {
		slot.fault.AfterTokens = *f.AfterTokens
	}
	l.engine.Arm(now, slot.fault)
}

// disarm takes faults back. Those that are not there have been taken back before.
func (l *loop) disarm(now engine.Time, ids []uint64) {
	for _, id := range ids {
		for i := range l.faults.slots {
			if slot := &l.faults.slots[i]; slot.fault != nil && slot.id == id {
				l.engine.Disarm(now, slot.fault)
				slot.fault = nil
			}
		}
	}
}

// publishFaults stores how often faults have struck, if any has since the last time.
func (l *loop) publishFaults(applied [engine.FaultKinds]uint64) {
	if applied == l.faults.published {
		return
	}
	l.faults.published = applied
	for i, kind := range ipc.FaultKinds {
		l.page.FaultsApplied[i].Store(applied[faultKinds[kind]])
	}
	for i := range l.faults.slots {
		if f := l.faults.slots[i].fault; f != nil {
			l.page.SetApplied(i, f.Applied)
		}
	}
}

// faultCountsOf is where the engine before this one left off.
func faultCountsOf(page *ipc.Page) (applied [engine.FaultKinds]uint64) {
	for i, kind := range ipc.FaultKinds {
		applied[faultKinds[kind]] = page.FaultsApplied[i].Load()
	}
	return applied
}

// crash ends this process, once what left the engine before has reached the kernel.
func (l *loop) crash() error {
	l.log.Warn().Msg("a fault has this process crash")
	ctx, cancel := context.WithTimeout(context.Background(), crashFlush)
	defer cancel()
	go l.discard(ctx)
	l.outputs.close(ctx)
	l.die()
	return errCrashed
}

// discard takes what is handed in until ctx ends. Among those who hand in are the writers of the outputs.
func (l *loop) discard(ctx context.Context) {
	for {
		select {
		case <-l.inputs:
		case <-ctx.Done():
			return
		}
	}
}

// close writes what is queued, within ctx, and ends the connections to all clients.
func (o *outputs) close(ctx context.Context) {
	var all sync.WaitGroup
	for _, t := range o.clients {
		if t.conn != nil {
			all.Go(func() { _ = t.conn.Close(ctx) }) // what a reader does not take is lost, as in any crash
		}
	}
	all.Wait()
}

// handshakeInput asks by how much a handshake with a frontend is to be late.
type handshakeInput struct{ lateC chan time.Duration } // capacity 1

func (in handshakeInput) apply(l *loop, now engine.Time) {
	late := l.engine.Handshake(now)
	if late > 0 {
		l.log.Info().Dur("delay", late).Msg("a fault delays the handshake")
	}
	in.lateC <- late
}

// handshakeDelay is handshakeInput for other goroutines. It is 0 where the loop or ctx has ended.
func (l *loop) handshakeDelay(ctx context.Context) time.Duration {
	in := handshakeInput{make(chan time.Duration, 1)}
	if !l.send(ctx, in) {
		return 0
	}
	select {
	case late := <-in.lateC:
		return late
	case <-l.ended:
	case <-ctx.Done():
	}
	return 0
}
