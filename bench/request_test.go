package main

import (
	"testing"

	"vllm-vcr/protocol/enginecore"
)

func TestRequest_Number(t *testing.T) {
	r := newRequest(shortPrompt, 128)
	for _, want := range []struct {
		slot       int
		generation uint32
	}{{0, 0}, {511, 1}, {1<<31 - 1, 1<<32 - 1}} {
		var got enginecore.Request
		if err := enginecore.DecodeRequest(r.number(want.slot, want.generation), &got); err != nil {
			t.Fatal(err)
		}
		slot, generation, ok := parseID([]byte(got.ID))
		if !ok || slot != want.slot || generation != want.generation {
			t.Errorf("id %q = %d, %d, %v, want %d, %d", got.ID, slot, generation, ok, want.slot, want.generation)
		}
		if got.Sampling.MaxTokens != 128 || !got.Sampling.IgnoreEOS || len(got.PromptTokens) != shortPrompt {
			t.Errorf("request for %d tokens, ignore_eos %v, prompt of %d; want 128, true, %d", got.Sampling.MaxTokens, got.Sampling.IgnoreEOS, len(got.PromptTokens), shortPrompt)
		}
	}
}

func TestParseID_Others(t *testing.T) {
	for _, id := range []string{"", "cmpl-bench-00000000", idTemplate + "0", "cmpl-bench-0000000g-00000000", "cmpl-bench-00000000-0000000g", "cmpl-bench-00000000_00000000"} {
		if slot, generation, ok := parseID([]byte(id)); ok {
			t.Errorf("id %q = %d, %d, want it refused", id, slot, generation)
		}
	}
}

func TestRequest_DoesNotAllocate(t *testing.T) {
	r := newRequest(shortPrompt, 128)
	id := []byte(idTemplate)
	if n := testing.AllocsPerRun(100, func() {
		r.number(7, 9)
		parseID(id)
	}); n != 0 {
		t.Errorf("%v allocations for each request, want 0", n)
	}
}
