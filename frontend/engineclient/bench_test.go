package engineclient

import (
	"encoding/binary"
	"fmt"
	"testing"

	"vllm-vcr/protocol/enginecore"
	"vllm-vcr/protocol/zmtp"
)

// benchEngine joins a frontend and returns the engine's input and output.
func benchEngine(b *testing.B, f *Frontend) (in, out *zmtp.Conn) {
	b.Helper()
	dial := func(address string, as zmtp.SocketType) *zmtp.Conn {
		c, err := zmtp.Dial(b.Context(), address, zmtp.Options{Type: as, Identity: binary.LittleEndian.AppendUint16(nil, 0)})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = c.Close(atOnce()) })
		return c
	}
	hello := dial(f.Handshake(), zmtp.Dealer)
	_ = hello.Send(status(enginecore.StatusHello)) // what fails shows in Recv
	frames, err := hello.Recv()
	if err != nil {
		b.Fatal(err)
	}
	init, err := enginecore.DecodeInit(frames[0])
	if err != nil {
		b.Fatal(err)
	}
	in, out = dial(init.Inputs[0], zmtp.Dealer), dial(init.Outputs[0], zmtp.Push)
	_ = in.Send(enginecore.AppendReady(nil, registration(0)))
	_ = hello.Send(status(enginecore.StatusReady))
	if err := f.Ready(b.Context()); err != nil {
		b.Fatal(err)
	}
	return in, out
}

// BenchmarkDelivery_512Tokens is the way of a message with one token for each of 512 requests from an engine's socket to the
// user. One message is on its way at a time.
func BenchmarkDelivery_512Tokens(b *testing.B) {
	delivered := make(chan struct{}, 1)
	f, err := Listen(Options{Handshake: "tcp://127.0.0.1:0", Engines: 1, Events: Events{
		Outputs: func(*Delivery) { delivered <- struct{}{} },
	}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close(atOnce()) })
	_, out := benchEngine(b, f)
	var batch enginecore.Batch
	batch.Reset(enginecore.Version{}, 0)
	for i := range 512 {
		batch.Token(enginecore.EncodeID(fmt.Sprintf("cmpl-8faf18a50a9a%08x", i)), []uint32{uint32(i)})
	}
	message := batch.Finish(nil, 1)
	b.ReportAllocs()
	for b.Loop() {
		if err := out.Send(message); err != nil {
			b.Fatal(err)
		}
		<-delivered
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/token")
}

// BenchmarkAdd is a request's way to an engine, which reads it.
func BenchmarkAdd(b *testing.B) {
	f, err := Listen(Options{Handshake: "tcp://127.0.0.1:0", Engines: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close(atOnce()) })
	in, _ := benchEngine(b, f)
	sampling := enginecore.DefaultSampling()
	r := enginecore.Request{ID: "cmpl-8faf18a50a9a00000000", PromptTokens: make([]uint32, 100), Sampling: &sampling}
	b.ReportAllocs()
	for b.Loop() {
		if err := f.Client(0).Add(0, &r); err != nil {
			b.Fatal(err)
		}
		if _, err := in.Recv(); err != nil {
			b.Fatal(err)
		}
	}
}
