package dispatch

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"testing"

	"vllm-vcr/protocol/enginecore"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestStream_OutputsInOrder(t *testing.T) {
	r := newRig(t, 1, nil)
	a, b := r.submit(t, request("a", 9)), r.submit(t, request("b", 9))
	e := r.engines[0]
	e.send(1, nil, tokens(a.ID(), 1), tokens("stranger", 7), tokens(b.ID(), 10))
	e.send(2, nil, tokens(a.ID(), 2, 3), tokens(b.ID(), 11))
	e.send(3, nil, finished(b.ID(), enginecore.FinishStop, 12), finished(a.ID(), enginecore.FinishLength, 4))
	for s, want := range map[*Stream]answer{
		a: {[]uint32{1, 2, 3, 4}, enginecore.FinishLength, io.EOF},
		b: {[]uint32{10, 11, 12}, enginecore.FinishStop, io.EOF},
	} {
		if diff := cmp.Diff(want, drain(within(t), s), cmpopts.EquateErrors()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", s.ID(), diff)
		}
		if c, ok, err := s.Poll(); ok || err != io.EOF {
			t.Errorf("%s: after its end: %+v, %v, %v; want io.EOF", s.ID(), c, ok, err)
		}
	}
}

// What a slow consumer finds is one chunk of all there is, with the parts that only some outputs have.
func TestStream_SlowConsumer(t *testing.T) {
	r := newRig(t, 1, nil)
	s, last := r.submit(t, request("a", 9)), r.submit(t, request("b", 9))
	prefill := enginecore.PrefillStats{Prompt: 3, Computed: 1, Cached: 2, LocalCached: 2}
	e := r.engines[0]
	e.send(1, nil, output{s.ID(), enginecore.Output{Tokens: []uint32{1}, Prefill: &prefill, KVTransfer: []byte{0x80}}})
	e.send(2, nil, tokens(s.ID(), 2))
	e.send(3, nil, output{s.ID(), enginecore.Output{
		Tokens: []uint32{3}, Finish: enginecore.FinishStop, StopReason: enginecore.StopReason{Token: enginecore.Some[int64](3)},
	}}, finished(last.ID(), enginecore.FinishLength, 1))
	if a := drain(within(t), last); a.Err != io.EOF { // all before it has come
		t.Fatalf("last = %+v", a)
	}
	got, ok, err := s.Poll()
	want := Chunk{
		Tokens: []uint32{1, 2, 3}, Finish: enginecore.FinishStop, StopReason: enginecore.StopReason{Token: enginecore.Some[int64](3)},
		Prefill: enginecore.Some(prefill), KVTransfer: []byte{0x80}, Outputs: 3,
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(Chunk{}, "Received"), cmpopts.EquateEmpty()); diff != "" || !ok || err != nil {
		t.Errorf("Poll = %v, %v (-want +got):\n%s", ok, err, diff)
	}
	if got.Received.IsZero() {
		t.Error("chunk without a time")
	}
}

func TestStream_EngineError(t *testing.T) {
	r := newRig(t, 1, nil)
	s := r.submit(t, request("a", 9))
	want := &enginecore.RequestError{Code: "validation_error", Message: "no"}
	r.engines[0].send(1, nil, output{s.ID(), enginecore.Output{Finish: enginecore.FinishError, Error: want}})
	c, err := s.Next(within(t))
	if diff := cmp.Diff(want, c.Error); diff != "" || c.Finish != enginecore.FinishError || err != nil {
		t.Errorf("chunk = %v, %v (-want +got):\n%s", c.Finish, err, diff)
	}
}

func TestStream_Cancel(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*Stream)
		want enginecore.FinishReason
	}{
		"cancel": {(*Stream).Cancel, enginecore.FinishAbort},
		"stop":   {(*Stream).Stop, enginecore.FinishStop},
	} {
		t.Run(name, func(t *testing.T) {
			w := &witness{}
			r := newRig(t, 1, w)
			s, other := r.submit(t, request("a", 9)), r.submit(t, request("b", 9))
			var callers sync.WaitGroup
			for range 8 {
				callers.Go(func() { c.end(s) })
			}
			if _, err := s.Next(within(t)); !errors.Is(err, ErrCanceled) {
				t.Errorf("Next: %v, want ErrCanceled", err)
			}
			callers.Wait()
			e := r.engines[0]
			e.send(1, nil, tokens(s.ID(), 1), finished(other.ID(), enginecore.FinishLength, 1))
			drain(within(t), other)
			other.Cancel() // too late to mean anything
			if id := await(t, "abort", e.aborts); id != s.ID() || len(e.aborts) > 0 {
				t.Errorf("abort of %s and %d more, want one of %s", id, len(e.aborts), s.ID())
			}
			if got := w.reasons(); !slices.Equal(got, []enginecore.FinishReason{c.want, enginecore.FinishLength}) {
				t.Errorf("ends = %v, want %v and length", got, c.want)
			}
			if st := r.Engines()[0]; st.Open != 0 {
				t.Errorf("%d open requests, want 0", st.Open)
			}
		})
	}
}

func TestStream_Next_Context(t *testing.T) {
	r := newRig(t, 1, nil)
	s := r.submit(t, request("a", 9))
	cause := errors.New("the client left")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	if _, err := s.Next(ctx); !errors.Is(err, cause) {
		t.Errorf("Next: %v, want %v", err, cause)
	}
	r.engines[0].send(1, nil, finished(s.ID(), enginecore.FinishStop, 5))
	if a := drain(within(t), s); a.Err != io.EOF || len(a.Tokens) != 1 {
		t.Errorf("after that: %+v, want a token and the end", a)
	}
}

// An answer that can't be read costs its request and nothing else.
func TestStream_UnreadableOutput(t *testing.T) {
	w := &witness{}
	r := newRig(t, 1, w)
	bad, good := r.submit(t, request("a", 9)), r.submit(t, request("b", 9))
	broken := enginecore.Output{Tokens: []uint32{1}, Pooling: &enginecore.Tensor{DType: "float64", Shape: []int{1}, Data: make([]byte, 8)}}
	e := r.engines[0]
	e.send(1, nil, output{bad.ID(), broken}, finished(good.ID(), enginecore.FinishLength, 1))
	if a := drain(within(t), good); a.Err != io.EOF {
		t.Errorf("good = %+v, want its end", a)
	}
	if a := drain(within(t), bad); a.Err == nil || a.Err == io.EOF || len(a.Tokens) != 0 {
		t.Errorf("bad = %+v, want an error", a)
	}
	if id := await(t, "abort", e.aborts); id != bad.ID() {
		t.Errorf("abort of %s, want of %s", id, bad.ID())
	}
	await(t, "refusal", r.refused)
	finishing := r.submit(t, request("c", 9))
	broken.Finish = enginecore.FinishStop
	e.send(2, nil, output{finishing.ID(), broken})
	if a := drain(within(t), finishing); a.Err == nil || a.Err == io.EOF {
		t.Errorf("finishing = %+v, want an error", a)
	}
	if n := len(w.reasons()); n != 3 {
		t.Errorf("%d ends, want 3", n)
	}
}

func TestMerged(t *testing.T) {
	r := newRig(t, 1, nil)
	req := request("a", 9)
	req.Choices = 3
	streams, err := r.SubmitAll(req)
	if err != nil {
		t.Fatal(err)
	}
	e := r.engines[0]
	e.send(1, nil, tokens(streams[0].ID(), 1)) // before they are merged, perhaps
	m := Merge(streams...)
	e.send(2, nil, finished(streams[1].ID(), enginecore.FinishStop, 2), finished(streams[0].ID(), enginecore.FinishLength, 3))
	streams[2].Cancel()
	got := make([]answer, 3)
	for {
		s, c, err := m.Next(within(t))
		if err == io.EOF {
			break
		}
		a := &got[s.Choice()]
		a.Tokens, a.Finish, a.Err = append(a.Tokens, c.Tokens...), c.Finish, err
	}
	want := []answer{
		{Tokens: []uint32{1, 3}, Finish: enginecore.FinishLength}, {Tokens: []uint32{2}, Finish: enginecore.FinishStop}, {Err: ErrCanceled},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestMerged_Next_Context(t *testing.T) {
	r := newRig(t, 1, nil)
	m := Merge(r.submit(t, request("a", 9)))
	if s, _, err := m.Next(atOnce()); s != nil || !errors.Is(err, context.Canceled) {
		t.Errorf("Next = %v, %v; want context.Canceled", s, err)
	}
}
