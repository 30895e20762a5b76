package supervisor

import (
	"testing"

	"vllm-vcr/fuzzlimit"
	"vllm-vcr/ipc"
)

// Whatever a process says is an event or an error, and a state that it reports is one of its own.
func FuzzDecodeFrame(f *testing.F) {
	for _, body := range []string{`{"version":1}`, `{"version":2}`, `{"state":"ready","addresses":{"outputs":["a"]}}`, `{"state":"dead"}`, `{"stats":{}}`, "", "null", "[", "\xff"} {
		for kind := range byte(7) {
			f.Add(kind, uint64(1), []byte(body))
		}
	}
	f.Fuzz(func(t *testing.T, kind byte, call uint64, body []byte) {
		defer fuzzlimit.Watch(t, len(body))()
		e, err := decodeFrame(nil, ipc.Frame{Kind: ipc.Kind(kind), Call: call, Body: body})
		if err != nil {
			return
		}
		frame, ok := e.(frameEvent)
		if !ok || frame.kind != ipc.Kind(kind) || frame.call != call {
			t.Fatalf("event %+v, want one of kind %d and call %d", e, kind, call)
		}
		if frame.kind == ipc.KindState && frame.state.Check() != nil {
			t.Errorf("state %q passed", frame.state.State)
		}
	})
}
