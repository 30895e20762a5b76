package latency

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"vllm-vcr/fuzzlimit"
)

func TestRead_Refuses(t *testing.T) {
	const good = `{"prompt_tokens":1,"output_tokens":3,"ttft_ms":5,"itl_ms":[1,2]}`
	tests := []struct{ name, trace, hash, want string }{
		{"empty", "", "", "no records"},
		{"blank lines only", "\n \n", "", "no records"},
		{"meta only", `{"meta":{"model":"m"}}`, "", "no records"},
		{"not JSON", good + "\nnonsense", "", "line 2"},
		{"no object", "[1]", "", `line 1: "[1]" is no JSON object`},
		{"a text for a number", `{"prompt_tokens":"x"}`, "", "line 1: prompt_tokens: a string, which is not what the format has there"},
		{"meta later", good + "\n" + `{"meta":{}}`, "", "line 2: prompt_tokens is missing"},
		{"no prompt", `{"output_tokens":1,"ttft_ms":1}`, "", "line 1: prompt_tokens is missing"},
		{"no output", `{"prompt_tokens":1,"ttft_ms":1}`, "", "output_tokens is missing"},
		{"no ttft", `{"prompt_tokens":1,"output_tokens":1}`, "", "ttft_ms is missing"},
		{"negative ttft", `{"prompt_tokens":1,"output_tokens":1,"ttft_ms":-1}`, "", "ttft_ms: -1"},
		{"fractional count", `{"prompt_tokens":1.5,"output_tokens":1,"ttft_ms":1}`, "", "line 1"},
		{"concurrency 0", `{"prompt_tokens":1,"output_tokens":1,"ttft_ms":1,"concurrency":0}`, "", "concurrency: 0"},
		{"no gaps", `{"prompt_tokens":1,"output_tokens":2,"ttft_ms":1}`, "", "output_tokens: 2 without itl_ms"},
		{"negative gap", `{"prompt_tokens":1,"output_tokens":2,"ttft_ms":1,"itl_ms":[-1]}`, "", "itl_ms[0]: -1"},
		{"chunks and gaps differ", `{"prompt_tokens":1,"output_tokens":9,"ttft_ms":1,"itl_ms":[1,1],"itl_tokens":[1]}`, "", "itl_tokens: 1 chunks for 2 gaps"},
		{"empty chunk", `{"prompt_tokens":1,"output_tokens":9,"ttft_ms":1,"itl_ms":[1],"itl_tokens":[0]}`, "", "itl_tokens[0]: 0"},
		{"no first chunk", `{"prompt_tokens":1,"output_tokens":2,"ttft_ms":1,"itl_ms":[1],"itl_tokens":[2]}`, "", "itl_tokens[0]: 2"},
		{"context differs", `{"prompt_tokens":1,"output_tokens":2,"ttft_ms":1,"itl_ms":[1],"itl_ctx":{"num_running":[1,2],"prefill_tokens":[0]}}`, "", "itl_ctx"},
		{"ids differ", `{"prompt_tokens":1,"output_tokens":1,"ttft_ms":1,"output_token_ids":[1,2]}`, "", "output_token_ids: 2"},
		{"summary without count", `{"prompt_tokens":1,"output_tokens":2,"ttft_ms":1,"itl_summary":{"mean_ms":1}}`, "", "itl_summary"},
		{"unknown finish", `{"prompt_tokens":1,"output_tokens":1,"ttft_ms":1,"finish_reason":"bored"}`, "", `finish_reason: "bored"`},
		{"no gaps at all", `{"prompt_tokens":1,"output_tokens":1,"ttft_ms":1}`, "", "no inter-token latency data"},
		{"hash asked, none there", good, "abc", "no config hash"},
		{"other hash", `{"meta":{"config_hash":"xyz"}}` + "\n" + good, "abc", `config hash is "xyz", want "abc"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Read(strings.NewReader(tt.trace), tt.hash)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want one with %q", err, tt.want)
			}
		})
	}
}

func TestRead_Accepts(t *testing.T) {
	trace := `
{"meta":{"config_hash":"abc","model":"m","anything":[1]}}
{"prompt_tokens":1,"output_tokens":1,"ttft_ms":5,"unknown":{"x":1},"block_hashes":[18446744073709551615]}

{"prompt_tokens":1,"output_tokens":4,"ttft_ms":5.5,"itl_ms":[1,2],"itl_tokens":[1,2],"finish_reason":"stop"}
{"prompt_tokens":1,"output_tokens":3,"ttft_ms":5,"itl_summary":{"mean_ms":2.5,"count":2}}`
	if _, err := Read(strings.NewReader(trace), "abc"); err != nil {
		t.Error(err)
	}
}

func TestTrace_DrawsFromTheNearestRecords(t *testing.T) {
	trace, err := Read(strings.NewReader(`
{"prompt_tokens":10,"output_tokens":2,"ttft_ms":10,"itl_ms":[1],"concurrency":1}
{"prompt_tokens":5000,"output_tokens":2,"ttft_ms":500,"itl_ms":[50],"concurrency":1}
{"prompt_tokens":10,"output_tokens":1,"ttft_ms":20,"concurrency":60}
`), "")
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		prompt, running uint64
		ttft, gap       time.Duration
	}{
		{10, 1, 10 * time.Millisecond, time.Millisecond},
		{0, 1, 10 * time.Millisecond, time.Millisecond},
		{4200, 1, 500 * time.Millisecond, 50 * time.Millisecond},
		{1 << 40, 1, 500 * time.Millisecond, 50 * time.Millisecond},
		{20, 50, 20 * time.Millisecond, time.Millisecond},
		{20, 1 << 40, 20 * time.Millisecond, time.Millisecond},
	}
	random := rand.New(rand.NewPCG(1, 2))
	for _, tt := range tests {
		if got := trace.FirstToken(random, tt.prompt, tt.running); got != tt.ttft {
			t.Errorf("FirstToken(%d, %d) = %v, want %v", tt.prompt, tt.running, got, tt.ttft)
		}
		if got := trace.Gap(random, tt.prompt, tt.running); got != tt.gap {
			t.Errorf("Gap(%d, %d) = %v, want %v", tt.prompt, tt.running, got, tt.gap)
		}
	}
}

func TestTrace_WeighsSummaries(t *testing.T) {
	trace, err := Read(strings.NewReader(`
{"prompt_tokens":1,"output_tokens":4,"ttft_ms":1,"itl_summary":{"mean_ms":9,"count":3}}
{"prompt_tokens":1,"output_tokens":2,"ttft_ms":1,"itl_ms":[1]}
{"prompt_tokens":1,"output_tokens":2,"ttft_ms":1,"itl_summary":{"mean_ms":7,"count":18446744073709551615}}
`), "")
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[time.Duration]int{}
	for range 4000 {
		seen[trace.Gap(random, 1, 1)]++
	}
	if nine := seen[9*time.Millisecond]; nine < 2800 || nine > 3200 || seen[time.Millisecond]+nine != 4000 {
		t.Errorf("drew %v, want three times as many 9 ms as 1 ms, and nothing else", seen)
	}
}

func TestLoad_NamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trace.jsonl")
	if _, err := Load(path, ""); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error = %v, want one with %s", err, path)
	}
	if err := os.WriteFile(path, []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path, ""); err == nil || !strings.Contains(err.Error(), path+": line 1") {
		t.Errorf("error = %v, want one with %s: line 1", err, path)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"meta":{}}` + "\n" + `{"prompt_tokens":1,"output_tokens":3,"ttft_ms":5,"itl_ms":[1,2]}`)
	f.Add(`{"prompt_tokens":1,"output_tokens":3,"ttft_ms":1e308,"itl_summary":{"mean_ms":1e308,"count":9}}`)
	f.Fuzz(func(t *testing.T, text string) {
		defer fuzzlimit.Watch(t, len(text))()
		trace, err := Read(strings.NewReader(text), "")
		if err != nil {
			return
		}
		random := rand.New(rand.NewPCG(1, 2))
		if d := trace.FirstToken(random, 1, 1); d < 0 {
			t.Errorf("time to first token %v", d)
		}
		if d := trace.Gap(random, 1, 1); d < 0 {
			t.Errorf("gap %v", d)
		}
	})
}
