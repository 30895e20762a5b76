package ipc

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"vllm-vcr/config"
	"vllm-vcr/fuzzlimit"
)

// What was read as a frame is the same bytes when it is written again.
func FuzzReadFrame(f *testing.F) {
	whole := AppendFrame(nil, Frame{Kind: KindCall, Call: 1, Body: []byte(`{"op":"ping"}`)})
	f.Add(whole)
	f.Add(append(whole, whole...))
	f.Add(whole[:len(whole)-1])
	f.Add([]byte("\xff\xff\xff\xff"))
	f.Add([]byte("\x00\x00\x00\x00"))
	f.Add([]byte("\x09\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		defer fuzzlimit.Watch(t, len(stream))()
		r := bytes.NewReader(stream)
		var buf, again []byte
		for {
			var frame Frame
			var err error
			if frame, buf, err = ReadFrame(r, buf); err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, ErrFrameSize) {
					t.Errorf("ReadFrame: unexpected error %v", err)
				}
				break
			}
			again = AppendFrame(again, frame)
		}
		if !bytes.HasPrefix(stream, again) {
			t.Errorf("frames written again: %x, want the start of %x", again, stream)
		}
	})
}

func FuzzDecode_Start(f *testing.F) {
	seed(f, Start{Magic: Magic, Version: Version, Config: config.Default(), Addresses: &Addresses{Inputs: []string{"tcp://127.0.0.1:1"}}})
	fuzzDecode[Start](f)
}

func FuzzDecode_Hello(f *testing.F) {
	seed(f, Hello{Version})
	fuzzDecode[Hello](f)
}

func FuzzDecode_State(f *testing.F) {
	seed(f, State{State: StateReady, Joined: "handshake", Addresses: &Addresses{Inputs: []string{"a"}, Outputs: []string{"b"}}})
	fuzzDecode[State](f)
}

func FuzzDecode_Call(f *testing.F) {
	seed(f, Call{Op: OpPrepare, Change: 1, Patch: config.Patch{{Key: "max_num_seqs", Raw: "1"}}, ResetStats: true, Filter: "info", Timeout: 3, Query: &RequestQuery{States: []string{"running"}, Limit: 9}})
	fuzzDecode[Call](f)
}

func FuzzDecode_Answer(f *testing.F) {
	live := config.Default().Live
	seed(f, Answer{Refused: "no", Config: &live, Stats: &Stats{Received: 1}, Requests: &Requests{List: []Request{{ID: "a", Arrived: 1}}, Matched: 2}})
	fuzzDecode[Answer](f)
}

func seed(f *testing.F, message any) {
	raw, err := Append(nil, KindCall, 1, message)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(raw[lengthSize+headerSize:])
	for _, body := range []string{"", "null", "{}", "[]", `{"version":1e999}`, `{"state":null}`, `{"patch":[{"key":"\ud800"}]}`, `{"config":{"live":[]}}`, "[[[[["} {
		f.Add([]byte(body))
	}
}

// fuzzDecode wants that no bytes do harm, and that what was understood once means the same when it is sent on.
func fuzzDecode[T any](f *testing.F) {
	f.Fuzz(func(t *testing.T, body []byte) {
		defer fuzzlimit.Watch(t, len(body))()
		var first, second T
		if err := (Frame{Body: body}).Decode(&first); err != nil {
			return
		}
		raw, err := Append(nil, KindCall, 1, first)
		if err != nil {
			t.Fatalf("Append of what was decoded: %v", err)
		}
		if err := (Frame{Body: raw[lengthSize+headerSize:]}).Decode(&second); err != nil {
			t.Fatalf("Decode of what was appended: %v", err)
		}
		if diff := cmp.Diff(first, second, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("message (-first +second):\n%s", diff)
		}
	})
}
