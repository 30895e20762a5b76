package frontend

import (
	"context"
	"testing"

	"github.com/tinylib/msgp/msgp"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/protocol/enginecore"
)

// engines answers as the exchange at hand has it.
func (p *player) engines() *fakeEngines {
	dead := &dispatch.EngineDeadError{Cause: errBoom}
	return &fakeEngines{
		SubmitFunc: func([]dispatch.Request) (Streams, error) {
			if p.dead.Load() {
				return nil, dispatch.ErrNoEngine
			}
			return newStreams(p.steps...), nil
		},
		HealthFunc: func() error {
			if p.dead.Load() {
				return dead
			}
			return nil
		},
		LoRAsFunc: func() []enginecore.LoRARequest {
			if p.current.Name == "http_models" {
				return nil
			}
			return p.loaded
		},
		LoadLoRAFunc: func(context.Context, string, string) (enginecore.LoRARequest, error) {
			return enginecore.LoRARequest{}, nil
		},
		UnloadLoRAFunc:       func(context.Context, string) error { return nil },
		SleepFunc:            func(context.Context, uint64, string) error { return nil },
		WakeUpFunc:           func(context.Context, []string) error { return nil },
		IsSleepingFunc:       func(context.Context) (bool, error) { return false, nil },
		ResetPrefixCacheFunc: func(context.Context, bool, bool) (bool, error) { return true, nil },
		CallFunc: func(context.Context, string, msgp.Raw) ([]dispatch.Answer, error) {
			return []dispatch.Answer{{Value: msgp.AppendBool(nil, false)}}, nil
		},
	}
}

// step is an output as a stream gives it.
func (o *engineOutput) step(t *testing.T) step {
	t.Helper()
	if o.Dead {
		return step{err: &dispatch.EngineDeadError{Cause: errBoom}}
	}
	c := dispatch.Chunk{
		Tokens: translated(t, o.Tokens), Logprobs: o.Logprobs.rows(t), PromptLogprobs: o.PromptLogprobs.rows(t),
		Finish: o.Finish, Error: o.Error,
	}
	switch stop := o.Stop.(type) {
	case float64:
		c.StopReason.Token = enginecore.Some(int64(stop))
	case string:
		c.StopReason.Text = stop
	}
	if o.Cached != nil {
		c.Prefill = enginecore.Some(enginecore.PrefillStats{Cached: *o.Cached, CacheCreation: o.Created})
	}
	if o.KVTransfer != nil {
		c.KVTransfer = rawMap(t, o.KVTransfer)
	}
	return step{stream: o.Stream, chunk: c}
}

func (l *engineLogprobs) rows(t *testing.T) dispatch.Logprobs {
	t.Helper()
	if l == nil {
		return dispatch.Logprobs{}
	}
	return dispatch.Logprobs{Width: l.Width, Tokens: translated(t, l.Tokens), Values: l.Values, Ranks: l.Ranks}
}

// words are the texts of the recorded engine's tokens.
var words = map[uint32]string{
	300: "as", 307: "        ", 314: " |", 321: "``", 328: " for", 335: "**", 342: "am", 349: " on", 311: " n", 312: "et",
	68: "e", 271: "ll", 78: "o", 284: " w", 263: "or", 75: "l", 67: "d",
}

// translated gives tokens the ids that their texts have here; a token that isn't a word keeps its own.
func translated(t *testing.T, ids []uint32) []uint32 {
	t.Helper()
	var list []uint32
	for _, id := range ids {
		word, ok := words[id]
		if !ok {
			list = append(list, id)
			continue
		}
		here := vocabulary().Encode(word)
		if len(here) != 1 {
			t.Fatalf("%q is %d tokens here, want one", word, len(here))
		}
		list = append(list, here[0])
	}
	return list
}
