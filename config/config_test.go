package config

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefault_IsValid(t *testing.T) {
	if err := Default().Validate(); err != nil {
		t.Error(err)
	}
}

// TestValidate_AllFaults has every option at fault at once.
func TestValidate_AllFaults(t *testing.T) {
	c := Default()
	c.HandshakeAddress, c.EngineCount, c.StartRank, c.VLLMVersion, c.OnFrontendLoss = "nowhere", 0, 70000, "9", "panic"
	c.OutputTokenChunkSize, c.VocabSize, c.TokensPerBlock, c.KVCacheSize = 0, 0, 0, 0
	c.SchedulingPolicy, c.TimeScale, c.StepGranularity = "lifo", -1, -1
	c.MaxNumSeqs, c.MaxNumBatchedTokens, c.TimeFactorUnderLoad, c.FailureInjectionRate = 0, 0, 0.5, 2
	c.FailureTypes = nil
	c.ControlAddress, c.ControlTimeout, c.RequestJournal, c.Restart, c.LogFormat = "x", 0, 70000, "maybe", "xml"
	want := []string{
		`--handshake-address: "nowhere": want tcp://HOST:PORT`,
		`--engine-count: "0": want an integer from 1 to 65536`,
		`--data-parallel-start-rank: "70000": want an integer from 0 to 65535`,
		`--vllm-version: "9": want one of 0.25, `,
		`--on-frontend-loss: "panic": want one of reconnect, exit`,
		`--output-token-chunk-size: "0": want an integer from 1 to 4096`,
		`--vocab-size: "0": want an integer from 1 to 4294967295`,
		`--tokens-per-block: "0": want`,
		`--kv-cache-size: "0": want`,
		`--max-num-seqs: "0": want`,
		`--max-num-batched-tokens: "0": want`,
		`--scheduling-policy: "lifo": want one of fcfs, priority`,
		`--time-factor-under-load: "0.5": want a number of at least 1`,
		`--time-scale: "-1": want a number above 0`,
		`--step-granularity: "-1ns": want a duration from 0 to 1s`,
		`--failure-injection-rate: "2": want a number from 0 to 1`,
		`--failure-types: "": want at least one of error, length, repetition`,
		`--control-address: "x": want HOST:PORT`,
		`--control-timeout: "0": want an integer from 1 to 86400`,
		`--request-journal: "70000": want an integer from 0 to 65536`,
		`--restart: "maybe": want one of never, on-failure`,
		`--log-format: "xml": want one of auto, json, text`,
	}
	wantLines(t, c.Validate(), want)
}

// wantLines compares the beginning of every line of err.
func wantLines(t *testing.T, err error, want []string) {
	t.Helper()
	var got []string
	if err != nil {
		got = strings.Split(err.Error(), "\n")
	}
	for i, line := range got {
		if i < len(want) && strings.HasPrefix(line, want[i]) {
			got[i] = want[i]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("faults differ (-want +got):\n%s", diff)
	}
}

func TestValidate_Conflicts(t *testing.T) {
	tests := []struct {
		name   string
		change func(*Config)
		want   []string
	}{
		{"certificate without key", func(c *Config) { c.SSLCertFile, c.ControlSSLCertFile = "c", "c" }, nil},
		{"keys without certificate", func(c *Config) { c.SSLKeyFile, c.ControlSSLKeyFile = "k", "l" },
			[]string{`--ssl-keyfile: "k" without --ssl-certfile, want both`, `--control-ssl-keyfile: "l" without --control-ssl-certfile, want both`}},
		{"last rank", func(c *Config) { c.StartRank, c.EngineCount = MaxRank, 1 }, nil},
		{"every rank", func(c *Config) { c.EngineCount = MaxRank + 1 }, nil},
		{"beyond the last rank", func(c *Config) { c.StartRank, c.EngineCount = MaxRank, 2 },
			[]string{"--data-parallel-start-rank: 65535 with --engine-count 2 makes rank 65536, want at most 65535"}},
		{"a wrong count is told once", func(c *Config) { c.StartRank, c.EngineCount = 1, MaxRank+2 },
			[]string{`--engine-count: "65537": want`}},
		{"trace alone", func(c *Config) { c.LatencyTrace = "t.jsonl" }, nil},
		{"trace with limits and a factor", func(c *Config) {
			c.LatencyTrace = "t.jsonl"
			c.MaxNumSeqs, c.MaxNumBatchedTokens, c.TimeFactorUnderLoad, c.TimeScale = 4, 8, 2, 3
		}, nil},
		{"trace with every time", func(c *Config) {
			c.LatencyTrace = "t.jsonl"
			c.TimeToFirstToken, c.TimeToFirstTokenStdDev, c.InterTokenLatency, c.InterTokenStdDev = 1, 2, 3, 4
			c.PrefillOverhead, c.PrefillTimePerToken, c.PrefillTimeStdDev = 5, 6, 7
		}, []string{
			"--time-to-first-token: 1 cannot go with --latency-trace",
			"--time-to-first-token-std-dev: 2 cannot go with --latency-trace",
			"--inter-token-latency: 3 cannot go with --latency-trace",
			"--inter-token-latency-std-dev: 4 cannot go with --latency-trace",
			"--prefill-overhead: 5 cannot go with --latency-trace",
			"--prefill-time-per-token: 6 cannot go with --latency-trace",
			"--prefill-time-std-dev: 7 cannot go with --latency-trace",
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Default()
			tt.change(&c)
			wantLines(t, c.Validate(), tt.want)
		})
	}
}

func TestOption_Fault(t *testing.T) {
	cause := errors.New("want less")
	err := Option{Flag: "speed"}.Fault("too\nmuch", cause)
	if got, want := err.Error(), `--speed: "too\nmuch": want less`; got != want {
		t.Errorf("fault = %q, want %q", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the fault does not wrap its cause")
	}
}

func TestClone_SharesNothing(t *testing.T) {
	c := Default()
	d := c.Clone()
	d.FailureTypes[0] = FailLength
	if c.FailureTypes[0] != FailError {
		t.Errorf("the original has %q, want %q", c.FailureTypes[0], FailError)
	}
}

// TestConfig_JSON sends a configuration the way it goes to a worker.
func TestConfig_JSON(t *testing.T) {
	want := Default()
	want.Seed, want.TimeScale, want.LatencyTrace = 1<<64-1, 0.1, `a "trace"`
	encoded, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Config
	if err := json.Unmarshal(encoded, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("configuration comes back different (-want +got):\n%s", diff)
	}
}

// TestLive_JSON holds the object of GET /config: 14 keys in a fixed order.
func TestLive_JSON(t *testing.T) {
	got, err := json.Marshal(Default().Live)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"time_to_first_token":0,"time_to_first_token_std_dev":0,"inter_token_latency":0,"inter_token_latency_std_dev":0,` +
		`"prefill_overhead":0,"prefill_time_per_token":0,"prefill_time_std_dev":0,"time_factor_under_load":1,"max_num_seqs":128,` +
		`"max_num_batched_tokens":2048,"max_model_len":0,"failure_injection_rate":0,"failure_types":["error"],"log_requests":false}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
