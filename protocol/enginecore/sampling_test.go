package enginecore

import (
	"math/bits"
	"testing"

	"github.com/tinylib/msgp/msgp"
)

func TestSamplingKeys_Table(t *testing.T) {
	if got, want := len(samplingKeys), bits.Len64(uint64(keysEnd))-1; got != want {
		t.Fatalf("%d keys described, %d have a bit", got, want)
	}
	for key, name := range map[SamplingKeys]string{
		KeyN: "n", KeyWatermarking: "watermarking", KeyMaxTokens: "max_tokens", KeyOutputKind: "output_kind", KeyEOSTokenID: "_eos_token_id",
		KeyBadWords: "bad_words", KeySkipReadingPrefixCache: "skip_reading_prefix_cache", KeyTraceDecodeTokenIDs: "trace_decode_token_ids",
	} {
		if got := samplingKeys[bits.TrailingZeros64(uint64(key))].name; got != name {
			t.Errorf("bit of %s describes %s", name, got)
		}
	}
	s := DefaultSampling()
	if got := s.written(Version{}); got != 0 {
		t.Errorf("default parameters write keys %b, want none", got)
	}
}

// What our own frontend builds from a client's completion is what the Python frontend sends, byte for byte.
func TestAppendRequest_AsPython(t *testing.T) {
	for _, c := range []struct {
		golden, version string
		change          func(*SamplingParams)
	}{
		{"0.33.0-python-dp2dense-add_dp_default-add", "0.33", func(s *SamplingParams) { s.MaxTokens = 2 }},
		{"0.27.1-python-dp2moe-add_dp_default-add", "0.27", func(s *SamplingParams) { s.MaxTokens = 2 }},
		{"0.27.1-python-add_completion_no_max_tokens-add", "0.27", func(s *SamplingParams) { s.OutputKind = OutputDelta }},
	} {
		t.Run(c.golden, func(t *testing.T) {
			want := goldenNamed(t, c.golden)
			var sent Request
			if err := DecodeRequest(want, &sent); err != nil {
				t.Fatal(err)
			}
			sampling := tinyModelSampling()
			c.change(&sampling)
			ours := Request{
				ID: sent.ID, PromptTokens: []uint32{39, 68, 271, 78, 284, 263, 75, 67}, Sampling: &sampling,
				ArrivalTime: sent.ArrivalTime, ExternalID: sent.ExternalID, ClientIndex: sent.ClientIndex,
			}
			sameBytes(t, AppendRequest(nil, mustVersion(t, c.version), &ours), want)
		})
	}
}

// tinyModelSampling is a completion's parameters with what the captured model's generation_config.json adds.
func tinyModelSampling() SamplingParams {
	s := DefaultSampling()
	s.Explicit = PythonKeys | KeyMinP
	s.RepetitionPenalty, s.Temperature, s.TopP, s.TopK = 1.05, 0.7, 0.8, 20
	s.StopTokenIDs, s.EOSTokenID, s.AllStopTokenIDs = []uint32{2045}, Some[uint32](2047), []uint32{2045, 2047}
	s.OutputKind, s.SkipClone = OutputFinalOnly, true
	s.Watermarking, s.SkipReadingPrefixCache = Some(false), Some(false)
	return s
}

// Every field comes back from the bytes of 0.33; older lines leave out the keys they don't know.
func TestSampling_EveryField(t *testing.T) {
	raw := msgp.Raw{0x80}
	want := SamplingParams{
		N: 2, PresencePenalty: 0.5, FrequencyPenalty: -0.5, RepetitionPenalty: 1.5, Temperature: 0.25, Watermarking: Some(true), TopP: 0.75,
		TopK: -1, MinP: 0.125, Seed: Some[int64](-1 << 63), Stop: []string{"a", ""}, StopTokenIDs: []uint32{1}, IgnoreEOS: true, MaxTokens: Unlimited,
		MinTokens: 3, Logprobs: Some[int64](-1), PromptLogprobs: Some[int64](0), PromptLogprobTokenIDs: raw, PromptLogprobStart: Some[uint64](4),
		LogprobTokenIDs: []uint32{2}, FlatLogprobs: true, IncludeStopString: true, OutputKind: OutputDelta, StreamInterval: Some[uint64](5),
		SkipClone: true, OutputTextBufferLength: 6, EOSTokenID: Some[uint32](7), AllStopTokenIDs: []uint32{8}, StructuredOutputs: raw, LogitBias: raw,
		AllowedTokenIDs: []uint32{9}, ExtraArgs: raw, BadWords: []string{"b"}, BadWordsTokenIDs: msgp.Raw{0x90}, SkipReadingPrefixCache: Some(true),
		ThinkingTokenBudget: Some[int64](10), RepetitionDetection: &RepetitionDetection{MaxPatternSize: 3, MinPatternSize: 2, MinCount: 4},
		RoutedExpertsPromptStart: 11, TraceDecodeTokenIDs: []uint32{12},
	}
	d := decoder{b: appendSampling(nil, Version{}, &want)}
	got := d.sampling(nil)
	if err := d.end("sampling"); err != nil {
		t.Fatal(err)
	}
	if got.Explicit != keysEnd-1 {
		t.Errorf("keys seen %b, want all of %b", got.Explicit, keysEnd-1)
	}
	sameRequest(t, &Request{Sampling: got}, &Request{Sampling: &want})

	old := appendSampling(nil, mustVersion(t, "0.32"), &want)
	if n := int(old[1])<<8 | int(old[2]); n != len(samplingKeys)-bits.OnesCount64(uint64(keys33)) {
		t.Errorf("0.32 has %d keys, want all but those of 0.33", n)
	}
}

// While the received map is kept it is sent on as it was, whatever the fields say.
func TestSampling_WireWins(t *testing.T) {
	d := decoder{b: []byte{0x81, 0xa1, 'z', 1}}
	s := d.sampling(nil)
	s.MaxTokens = 99
	sameBytes(t, appendSampling(nil, Version{}, s), []byte{0x81, 0xa1, 'z', 1})
	s.Wire = nil
	sameBytes(t, appendSampling(nil, Version{}, s), append([]byte{0xde, 0, 1, 0xaa}, "max_tokens\x63"...))
}
