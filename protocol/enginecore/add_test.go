package enginecore

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tinylib/msgp/msgp"
)

// fullRequest has something in every field.
func fullRequest() Request {
	raw := func(s string) msgp.Raw { return msgp.AppendString(nil, s) }
	sampling := DefaultSampling()
	sampling.MaxTokens, sampling.Seed, sampling.EOSTokenID = 7, Some[int64](-9), Some[uint32](2047)
	return Request{
		ID: "cmpl-1", PromptTokens: []uint32{1, 70000, 1 << 31}, MMFeatures: raw("mm"), Sampling: &sampling, Pooling: raw("pool"),
		ArrivalTime: 1700000000.5, LoRA: &LoRARequest{Name: "l", ID: 3, Path: "/x", BaseModel: "b", LoadInplace: true},
		CacheSalt: "salt", DataParallelRank: Some[uint32](0), PromptEmbeds: raw("e"), PromptIsTokens: raw("i"), ClientIndex: 2, CurrentWave: 4,
		Priority: -300, TraceHeaders: raw("t"), Resumable: true, ExternalID: "ext", ReasoningEnded: Some(false), ReasoningParser: raw("r"),
		AbortImmediately: true, SessionID: "s", KVHints: raw("h"),
	}
}

func TestRequest_RoundTrip(t *testing.T) {
	want := fullRequest()
	var got Request
	if err := DecodeRequest(AppendRequest(nil, Version{}, &want), &got); err != nil {
		t.Fatal(err)
	}
	sameRequest(t, &got, &want)

	want.SessionID, want.KVHints = "", nil // not on the lines before
	if err := DecodeRequest(AppendRequest(nil, mustVersion(t, "0.27"), &want), &got); err != nil {
		t.Fatal(err)
	}
	sameRequest(t, &got, &want)
}

// sameRequest compares all but what a decoder notes about the bytes.
func sameRequest(t *testing.T, got, want *Request) {
	t.Helper()
	wire := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Wire" || p.Last().String() == ".Explicit" }, cmp.Ignore())
	if diff := cmp.Diff(want, got, wire); diff != "" {
		t.Errorf("request differs (-want +got):\n%s", diff)
	}
}

// Every length from the required minimum to more than is known decodes, and what is missing has its default.
func TestDecodeRequest_AnyLength(t *testing.T) {
	full := fullRequest()
	elements := elementsOf(t, AppendRequest(nil, Version{}, &full))
	for n := range len(elements) + 4 {
		b := msgp.AppendArrayHeader(nil, uint32(n))
		for i := range n {
			if i < len(elements) {
				b = append(b, elements[i]...)
			} else {
				b = append(b, 0x81, 0xa1, 'k', 0xd4, 5, 1) // a map with an ext value, of a line to come
			}
		}
		r := Request{ClientIndex: 9}
		err := DecodeRequest(b, &r)
		if (err == nil) != (n >= addRequired) {
			t.Errorf("%d elements: %v", n, err)
		}
		if n > 0 && r.ID != full.ID {
			t.Errorf("%d elements: id %q, want %q", n, r.ID, full.ID)
		}
		if n >= addRequired && n <= addClientIndex && r.ClientIndex != 0 {
			t.Errorf("%d elements: client index %d, want its default", n, r.ClientIndex)
		}
	}
}

func elementsOf(t *testing.T, b []byte) [][]byte {
	t.Helper()
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]byte, n)
	for i := range out {
		rest, err := skip(b)
		if err != nil {
			t.Fatal(err)
		}
		out[i], b = b[:len(b)-len(rest)], rest
	}
	return out
}

// Nil where vLLM may send it, whole numbers for floats, floats of both widths, and the other map's forms of a key.
func TestDecodeRequest_Tolerance(t *testing.T) {
	b := msgp.AppendArrayHeader(nil, 22)
	b = msgp.AppendString(b, "a")
	b = msgp.AppendNil(b) // a prompt of embeddings
	b = msgp.AppendNil(b)
	b = msgp.AppendMapHeader(b, 7)
	b = msgp.AppendFloat32(msgp.AppendString(b, "temperature"), 0.5)
	b = msgp.AppendInt(msgp.AppendString(b, "top_p"), 1)
	b = msgp.AppendNil(msgp.AppendString(b, "repetition_penalty"))
	b = msgp.AppendNil(msgp.AppendString(b, "max_tokens"))
	b = msgp.AppendNil(msgp.AppendString(b, "stop_token_ids"))
	b = msgp.AppendNil(msgp.AppendString(b, "never heard of"))
	b = append(b, 0x07, 0x81, 0xc0, 0xc0) // a key that is no string
	b = msgp.AppendNil(b)
	b = msgp.AppendUint(b, 1700000000)
	for range 16 {
		b = msgp.AppendNil(b)
	}
	var r Request
	if err := DecodeRequest(b, &r); err != nil {
		t.Fatal(err)
	}
	sampling := DefaultSampling()
	sampling.Temperature, sampling.MaxTokens = 0.5, Unlimited
	sameRequest(t, &r, &Request{ID: "a", Sampling: &sampling, ArrivalTime: 1700000000})
}

func TestDecodeRequest_Errors(t *testing.T) {
	id := func(rest ...byte) []byte { return append([]byte{0x96, 0xa1, 'a'}, rest...) }
	for _, c := range []struct {
		name, want, id string
		b              []byte
	}{
		{"no message", "add request", "", nil},
		{"no array", "add request", "", []byte{0x80}},
		{"empty array", "0 elements, want at least 6", "", []byte{0x90}},
		{"nil id", "request_id: nil, want a string", "", []byte{0x96, 0xc0, 0x90, 0xc0, 0xc0, 0xc0, 0xc0}},
		{"number as id", "request_id", "", []byte{0x96, 1, 0x90, 0xc0, 0xc0, 0xc0, 0xc0}},
		{"tokens as text", "prompt_token_ids", "a", id(0xa1, 'x', 0xc0, 0xc0, 0xc0, 0xc0)},
		{"negative token", "prompt_token_ids: element 1", "a", id(0x92, 1, 0xff, 0xc0, 0xc0, 0xc0, 0xc0)},
		{"2^32 tokens claimed", "prompt_token_ids: array of 4294967295 elements in 4 bytes", "a", id(0xdd, 0xff, 0xff, 0xff, 0xff, 0xc0, 0xc0, 0xc0, 0xc0)},
		{"a token too large", "prompt_token_ids: element 0: 4294967296, want at most 4294967295", "a", id(0x91, 0xcf, 0, 0, 0, 1, 0, 0, 0, 0, 0xc0, 0xc0, 0xc0, 0xc0)},
		{"sampling as array", "sampling_params", "a", id(0x90, 0xc0, 0x90, 0xc0, 0xc0)},
		{"map claims too much", "sampling_params: map of 4294967295 pairs in 2 bytes", "a", id(0x90, 0xc0, 0xdf, 0xff, 0xff, 0xff, 0xff, 0xc0, 0xc0)},
		{"text as max_tokens", `sampling_params: key "n"`, "a", id(0x90, 0xc0, 0x81, 0xa1, 'n', 0xa1, 'x', 0xc0, 0xc0)},
		{"cut", "mm_features", "a", id(0x90, 0xd9, 200, 0xc0, 0xc0)},
		{"bytes behind", "1 bytes behind the message", "a", id(0x90, 0xc0, 0xc0, 0xc0, 0x00, 0x00)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Request{ID: "left from before"}
			err := DecodeRequest(c.b, &r)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q in it", err, c.want)
			}
			if r.ID != c.id {
				t.Errorf("id %q, want %q", r.ID, c.id)
			}
		})
	}
}

func TestDecodeRequest_ReusesMemory(t *testing.T) {
	first := fullRequest()
	b := AppendRequest(nil, Version{}, &first)
	var r Request
	if err := DecodeRequest(b, &r); err != nil {
		t.Fatal(err)
	}
	tokens, sampling := &r.PromptTokens[0], r.Sampling
	if err := DecodeRequest(b, &r); err != nil {
		t.Fatal(err)
	}
	if &r.PromptTokens[0] != tokens || r.Sampling != sampling {
		t.Error("the token list or the sampling parameters were allocated anew")
	}
}
