package dispatch

import (
	"fmt"
	"time"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// deliver takes one message of an engine.
func (d *Dispatcher) deliver(v *engineclient.Delivery) {
	<-d.startedC
	o := v.Outputs
	e := d.engines[o.EngineIndex]
	e.delivery.Lock()
	defer e.delivery.Unlock()
	if o.Stats != nil && e.present() { // else it is what one that has gone said last
		if !d.version.AtLeast(33) { // which counts the skipped among the waiting
			o.Stats.Waiting -= min(o.Stats.Waiting, o.Stats.SkippedWaiting)
		}
		d.balancer.report(e.rank, o.Stats.Waiting+o.Stats.SkippedWaiting, o.Stats.Running)
		d.observer.Scheduled(e.rank, o.Stats)
	}
	if len(o.Requests) == 0 {
		return
	}
	if e.account(o.Requests, moment{v.Received, clock(o.Timestamp, v.Received)}) {
		d.observer.Step(e.rank, &e.step.Step)
	}
	for i := range e.step.ends {
		d.observer.Ended(e.rank, &e.step.ends[i])
	}
	for i, s := range e.hits {
		if s != nil {
			d.push(s, &o.Requests[i].Output, v)
		}
	}
	clear(e.hits)
}

// clock is the engine's time of a message in seconds, or ours where it tells none.
func clock(timestamp float64, received time.Time) float64 {
	if timestamp != 0 {
		return timestamp
	}
	return float64(received.UnixNano()) / 1e9
}

// account finds the streams of a message's outputs and enters what came; false if there are none. It has e.delivery.
func (e *engine) account(outputs []enginecore.RequestOutput, at moment) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.step.reset()
	e.hits = e.hits[:0]
	found := false
	for i := range outputs {
		o := &outputs[i]
		s := e.streams[string(o.ID)]
		if s != nil && !s.account(&o.Output, at, &e.step) {
			s = nil
		}
		if s != nil && o.Finish != enginecore.FinishNone {
			e.forget(s)
		}
		e.hits = append(e.hits, s)
		found = found || s != nil
	}
	return found
}

// push hands an output to its consumer. A request whose output can't be read is given up.
func (d *Dispatcher) push(s *Stream, o *enginecore.Output, v *engineclient.Delivery) {
	if err := s.push(o, v.Aux, v.Received); err != nil {
		d.refuse(fmt.Errorf("engine %d: request %.64q: %w", s.Rank(), s.id, err))
		s.giveUp(enginecore.FinishError, err, true)
	}
}
