package worker

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/config"
	"vllm-vcr/protocol/enginecore"
)

// sampled is a request with sampling parameters that change makes.
func sampled(id string, change func(*enginecore.SamplingParams)) enginecore.Request {
	r := request(id, 10)
	change(r.Sampling)
	return r
}

func TestAnswers_ForcedTokensAndStops(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.VocabSize = 8 }})
	token := enginecore.Some[uint32]
	tests := []struct {
		name   string
		change func(*enginecore.SamplingParams)
		tokens []uint32 // the first ones
		count  int
		finish enginecore.FinishReason
		stop   enginecore.StopReason
	}{
		{"forced, then the source's", func(s *enginecore.SamplingParams) { s.TraceDecodeTokenIDs = []uint32{70, 71} },
			[]uint32{70, 71}, 10, enginecore.FinishLength, enginecore.StopReason{}},
		{"forced beyond the limit", func(s *enginecore.SamplingParams) { s.TraceDecodeTokenIDs, s.MaxTokens = []uint32{70, 71, 72}, 2 },
			[]uint32{70, 71}, 2, enginecore.FinishLength, enginecore.StopReason{}},
		{"end of sequence", func(s *enginecore.SamplingParams) {
			s.TraceDecodeTokenIDs, s.EOSTokenID = []uint32{70, 2, 71}, token(2)
		}, []uint32{70, 2}, 2, enginecore.FinishStop, enginecore.StopReason{}},
		{"end of sequence ignored", func(s *enginecore.SamplingParams) {
			s.TraceDecodeTokenIDs, s.EOSTokenID, s.IgnoreEOS = []uint32{70, 2, 71}, token(2), true
		}, []uint32{70, 2, 71}, 10, enginecore.FinishLength, enginecore.StopReason{}},
		{"stop token", func(s *enginecore.SamplingParams) {
			s.TraceDecodeTokenIDs, s.StopTokenIDs = []uint32{70, 71, 72}, []uint32{99, 71}
		}, []uint32{70, 71}, 2, enginecore.FinishStop, enginecore.StopReason{Token: enginecore.Some[int64](71)}},
		{"stop token before min_tokens", func(s *enginecore.SamplingParams) {
			s.TraceDecodeTokenIDs, s.StopTokenIDs, s.MinTokens = []uint32{71, 70, 71}, []uint32{71}, 2
		}, []uint32{71, 70, 71}, 3, enginecore.FinishStop, enginecore.StopReason{Token: enginecore.Some[int64](71)}},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			id := fmt.Sprint(i)
			r.add(sampled(id, tt.change))
			got := r.outputs.awaitEnd(id)
			if len(got.tokens) != tt.count || !cmp.Equal(got.tokens[:len(tt.tokens)], tt.tokens) {
				t.Errorf("tokens %v, want %d that begin with %v", got.tokens, tt.count, tt.tokens)
			}
			if got.finish != tt.finish || got.stop != tt.stop {
				t.Errorf("finish %v at %+v, want %v at %+v", got.finish, got.stop, tt.finish, tt.stop)
			}
		})
	}
}

// A source gives no token by accident at which the request would end.
func TestAnswers_AvoidStopTokens(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.VocabSize = 4 }})
	r.add(sampled("a", func(s *enginecore.SamplingParams) {
		s.MaxTokens, s.StopTokenIDs, s.EOSTokenID, s.AllStopTokenIDs = 1000, []uint32{0}, enginecore.Some[uint32](1), []uint32{3}
	}))
	got := r.outputs.awaitEnd("a")
	for i, token := range got.tokens {
		if token != 2 {
			t.Fatalf("token %d is %d, want 2, the only one at which nothing ends", i, token)
		}
	}
	if len(got.tokens) != 1000 || got.finish != enginecore.FinishLength {
		t.Errorf("%d tokens, finish %v, want 1000, length", len(got.tokens), got.finish)
	}
}

// Log probabilities that fill no message are told, more of them are refused, and who did not ask for them notices nothing.
func TestAnswers_LogprobsOfTheWholeVocabulary(t *testing.T) {
	const vocabulary = 1 << 20 // 8 MiB of them for each token
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.VocabSize, c.OutputTokenChunkSize = vocabulary, 8 }})
	all := enginecore.Some[int64](-1)
	short := sampled("prompt", func(s *enginecore.SamplingParams) { s.PromptLogprobs = all })
	short.PromptTokens = []uint32{1, 2}
	r.add(short)
	if got := r.outputs.awaitEnd("prompt"); got.prompt == nil || !cmp.Equal(got.prompt.TokenIDs.Shape, []int{1, vocabulary + 1}) {
		t.Errorf("log probabilities of two tokens: %v, want all", got.err)
	}
	long := sampled("long prompt", func(s *enginecore.SamplingParams) { s.PromptLogprobs = all })
	long.PromptTokens = make([]uint32, 9)
	refused := map[string]enginecore.Request{
		"prompt_logprobs: 9 tokens with 1048577 log probabilities each, want at most 64 MiB of them in one output": long,
		"logprobs: 8 tokens with 1048577 log probabilities each, want at most 64 MiB of them in one output": sampled("output", func(s *enginecore.SamplingParams) {
			s.Logprobs = all
		}),
	}
	for want, req := range refused {
		r.add(req)
		if got := r.outputs.awaitEnd(req.ID); got.finish != enginecore.FinishError || got.err == nil || got.err.Message != want {
			t.Errorf("%s: finish %v, error %+v, want %q", req.ID, got.finish, got.err, want)
		}
	}
	r.add(request("plain", 8))
	if got := r.outputs.awaitEnd("plain"); len(got.tokens) != 8 {
		t.Errorf("%d tokens after all that, want 8", len(got.tokens))
	}
}

func TestAnswers_Logprobs(t *testing.T) {
	for _, version := range []string{"0.27.1", "0.33"} {
		t.Run(version, func(t *testing.T) {
			r := newRig(t, rigOptions{version: version, change: func(c *config.Config) { c.OutputTokenChunkSize = 3 }})
			r.add(sampled("a", func(s *enginecore.SamplingParams) {
				s.Logprobs, s.PromptLogprobs = enginecore.Some[int64](2), enginecore.Some[int64](0)
			}))
			got := r.outputs.awaitEnd("a")
			var tokens []uint32
			for _, l := range got.logprobs {
				rows, width := l.TokenIDs.Shape[0], l.TokenIDs.Shape[1]
				if width != 3 || l.Ranks.Shape[0] != rows || len(l.Logprobs.Data) != 4*rows*width {
					t.Fatalf("shapes %v, %v, %v", l.TokenIDs.Shape, l.Logprobs.Shape, l.Ranks.Shape)
				}
				for row := range rows {
					tokens = append(tokens, binary.LittleEndian.Uint32(l.TokenIDs.Data[4*row*width:]))
				}
			}
			if diff := cmp.Diff(got.tokens, tokens); diff != "" {
				t.Errorf("the first column is not the tokens (-tokens +column):\n%s", diff)
			}
			if got.prompt == nil || !cmp.Equal(got.prompt.TokenIDs.Shape, []int{3, 1}) {
				t.Errorf("prompt log probabilities %+v, want one row for each prompt token but the first", got.prompt)
			}
		})
	}
}

func TestAnswers_Pooling(t *testing.T) {
	r := newRig(t, rigOptions{})
	embed := func(id string, prompt ...uint32) []byte {
		pooling := msgp.AppendNil(msgp.AppendArrayHeader(nil, 1))
		r.add(enginecore.Request{ID: id, PromptTokens: prompt, Pooling: pooling})
		got := r.outputs.awaitEnd(id)
		if got.finish != enginecore.FinishStop || len(got.tokens) != 0 || got.pooled == nil {
			t.Fatalf("finish %v with %d tokens and vector %v, want stop with no tokens and a vector", got.finish, len(got.tokens), got.pooled)
		}
		return got.pooled.Data
	}
	a := embed("a", 1, 2)
	if !cmp.Equal(a, embed("b", 1, 2)) || cmp.Equal(a, embed("c", 2, 1)) {
		t.Error("a vector does not depend on the prompt, or on more than the prompt")
	}
	sum := 0.0
	for at := 0; at < len(a); at += 4 {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(a[at:])))
		sum += x * x
	}
	if math.Abs(sum-1) > 1e-6 {
		t.Errorf("length %v, want 1", math.Sqrt(sum))
	}
	r.add(enginecore.Request{ID: "nothing", PromptTokens: []uint32{1}})
	if got := r.outputs.awaitEnd("nothing"); got.finish != enginecore.FinishError {
		t.Errorf("a request for nothing: finish %v, want error", got.finish)
	}
}

func TestAnswers_Adapters(t *testing.T) {
	r := newRig(t, rigOptions{change: func(c *config.Config) { c.MaxLoras, c.TimeToFirstToken = 1, 60_000 }})
	with := func(id string, adapter uint64, name string) enginecore.Request {
		req := request(id, 1)
		req.LoRA = &enginecore.LoRARequest{Name: name, ID: adapter, Path: "/lora"}
		return req
	}
	for id, name := range map[int]string{1: "sql", 2: "poems"} {
		if _, err := r.utility("add_lora", []any{name, id, "/lora", nil, false, false}); err != nil {
			t.Fatal(err)
		}
	}
	r.add(with("unknown", 3, "other"))
	got := r.outputs.awaitEnd("unknown")
	want := &enginecore.RequestError{Code: "validation_error", Message: `LoRA adapter "other" is not loaded`}
	if diff := cmp.Diff(want, got.err); diff != "" || got.finish != enginecore.FinishError {
		t.Errorf("unknown adapter: finish %v, error (-want +got):\n%s", got.finish, diff)
	}
	r.add(with("a", 1, "sql"))
	r.add(with("b", 2, "poems"))
	r.add(request("c", 1))
	r.outputs.await("one waiting for an adapter", func() bool {
		if len(r.outputs.stats) == 0 {
			return false
		}
		s := r.outputs.stats[len(r.outputs.stats)-1]
		return s.Running == 2 && s.SkippedWaiting == 1 && s.Waiting == 0 && s.KVCacheUsage > 0
	})
	if err := r.frontend.Client(0).Abort(0, "a", "c"); err != nil {
		t.Fatal(err)
	}
	r.outputs.await("its turn", func() bool {
		s := r.outputs.stats[len(r.outputs.stats)-1]
		return s.Running == 1 && s.SkippedWaiting == 0
	})
}
