package engineclient

import (
	"errors"
	"fmt"
	"sync"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// coordinator is as much of vLLM's data-parallel coordinator as an engine can tell apart from the real one: it says READY when
// all have subscribed, hands their reports on, and starts waves when it is told to. It counts no waves itself.
type coordinator struct {
	publish *door
	reports *door
	engines int

	mu          sync.Mutex
	subscribers map[*zmtp.Conn]struct{}
	ready       bool // all were there once
}

func (f *Frontend) openCoordinator(in *enginecore.Init) error {
	k := &coordinator{engines: len(f.engines), subscribers: map[*zmtp.Conn]struct{}{}}
	var err error
	if k.publish, err = f.door("publish", zmtp.XPub, k.serveSubscriber); err != nil {
		return err
	}
	f.coordinator = k
	if k.reports, err = f.door("reports", zmtp.Pull, f.serveReports); err != nil {
		return err
	}
	in.CoordinatorInput, in.CoordinatorOutput = k.publish.address(), k.reports.address()
	return nil
}

func (k *coordinator) doors() []*door {
	if k.reports == nil { // it could not be opened
		return []*door{k.publish}
	}
	return []*door{k.publish, k.reports}
}

func (k *coordinator) complete() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.ready
}

// serveSubscriber follows the subscription of one engine, which comes as a message 0x01 with an empty prefix.
func (k *coordinator) serveSubscriber(c *zmtp.Conn) {
	defer k.unsubscribe(c)
	for {
		frames, err := c.Recv()
		if err != nil {
			return
		}
		switch string(frames[0]) {
		case "\x01":
			k.subscribe(c)
		case "\x00":
			k.unsubscribe(c)
		}
	}
}

// subscribe tells all engines when the last has come, and one that comes later at once.
func (k *coordinator) subscribe(c *zmtp.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.subscribers[c] = struct{}{}
	switch {
	case k.ready:
		_ = c.Send([]byte(enginecore.CoordinatorReady)) // whoever has gone needs no READY
	case len(k.subscribers) == k.engines:
		k.ready = true
		k.broadcast([]byte(enginecore.CoordinatorReady))
	}
}

func (k *coordinator) unsubscribe(c *zmtp.Conn) {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.subscribers, c)
}

// broadcast has k.mu.
func (k *coordinator) broadcast(frames ...[]byte) {
	for c := range k.subscribers {
		_ = c.Send(frames...) // its end is seen by serveSubscriber
	}
}

// serveReports hands on what one engine tells the coordinator.
func (f *Frontend) serveReports(c *zmtp.Conn) {
	o := enginecore.Outputs{Version: f.options.Version}
	for {
		frames, err := c.Recv()
		if err != nil {
			return
		}
		if err := f.decode(frames, &o); err != nil {
			f.refuse(fmt.Errorf("coordinator: %w", err))
			continue
		}
		if f.options.Report != nil {
			f.options.Report(&o)
		}
	}
}

// StartWave sends a START_DP_WAVE to all engines that have subscribed to the coordinator.
func (f *Frontend) StartWave(w enginecore.StartWave) error {
	if f.coordinator == nil {
		return errors.New("start wave: the frontend has no coordinator")
	}
	f.coordinator.mu.Lock()
	defer f.coordinator.mu.Unlock()
	f.coordinator.broadcast([]byte{enginecore.FrameStartWave}, enginecore.AppendStartWave(nil, w))
	return nil
}
