package dispatch

import (
	"fmt"
	"testing"
	"time"

	"vllm-vcr/frontend/engineclient"
	"vllm-vcr/protocol/enginecore"
)

// pass delivers a message and takes every chunk of it.
func pass(t testing.TB, d *Dispatcher, v *engineclient.Delivery, streams []*Stream) {
	d.deliver(v)
	for _, s := range streams {
		if c, ok, err := s.Poll(); !ok || err != nil || len(c.Tokens) != 1 {
			t.Fatalf("chunk = %+v, %v, %v", c, ok, err)
		}
	}
}

func TestDispatcher_Deliver_NoAllocations(t *testing.T) {
	d := emptyRig(t, 1, nil).Dispatcher
	v, streams := delivery(t, d, 64)
	for range 2 { // both buffers of each stream
		pass(t, d, v, streams)
	}
	if got := testing.AllocsPerRun(20, func() { pass(t, d, v, streams) }); got > 0 {
		t.Errorf("%v allocations for a message of 64 outputs, want none", got)
	}
}

// A token's way from a decoded message to its consumer, without a change of goroutine.
func BenchmarkDispatcher_Deliver(b *testing.B) {
	const streams = 512
	d, err := New(Options{Handshake: "tcp://127.0.0.1:0", Engines: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close(atOnce())
	v, open := delivery(b, d, streams)
	b.ReportAllocs()
	for b.Loop() {
		pass(b, d, v, open)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/streams, "ns/token")
}

// delivery is a message with one token for each of n streams, which are entered by hand: no engine is behind it.
func delivery(t testing.TB, d *Dispatcher, n int) (*engineclient.Delivery, []*Stream) {
	t.Helper()
	var b enginecore.Batch
	b.Reset(enginecore.Version{}, 0)
	e := d.engines[0]
	e.open(e.joined(enginecore.ReadyResponse{}))
	streams := make([]*Stream, n)
	for i := range streams {
		s := newStream(d, fmt.Sprintf("cmpl-0123456789abcdef-%d-89abcdef", i), 0, history{group: newGroup(1)})
		if err := e.add(s, func(int) error { return nil }); err != nil {
			t.Fatal(err)
		}
		streams[i] = s
		b.Token(enginecore.EncodeID(s.ID()), []uint32{uint32(i)})
	}
	o := &enginecore.Outputs{}
	if err := enginecore.DecodeOutputs(b.Finish(nil, 1), o); err != nil {
		t.Fatal(err)
	}
	return &engineclient.Delivery{Received: time.Now(), Outputs: o}, streams
}
