package metrics

import (
	"strings"
	"testing"
	"time"

	"vllm-vcr/frontend/dispatch"
	"vllm-vcr/protocol/enginecore"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
)

// reading is one value of an exposition.
type reading struct {
	name   string
	labels []string
	want   float64
}

func check(t *testing.T, families map[string]*dto.MetricFamily, readings ...reading) {
	t.Helper()
	for _, r := range readings {
		if got := value(t, families, r.name, r.labels...); got != r.want {
			t.Errorf("%s%q = %v, want %v", r.name, r.labels, got, r.want)
		}
	}
}

func of(engine string, more ...string) []string {
	return append([]string{"engine", engine, "model_name", "tiny"}, more...)
}

func two() *Metrics {
	m := New(Options{Model: "tiny", Engines: 2})
	m.Joined(0, registration())
	m.Joined(1, registration())
	return m
}

// Every series of every engine is there before the first request.
func TestMetrics_BeforeTheFirstRequest(t *testing.T) {
	families := scrape(t, two())
	for name, f := range families {
		if !strings.HasPrefix(name, "vllm:") || name == "vllm:cache_config_info" {
			continue
		}
		for _, s := range f.GetMetric() {
			if hasAll(s, []string{"engine", "0"}) || hasAll(s, []string{"engine", "1"}) {
				if c := s.GetHistogram().GetSampleCount(); c != 0 {
					t.Errorf("%s: %d observations", name, c)
				}
			}
		}
	}
	for _, name := range []string{
		"vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "vllm:prefix_cache_queries_total",
		"vllm:time_to_first_token_seconds", "vllm:inter_token_latency_seconds", "vllm:request_prompt_tokens", "vllm:generation_tokens_total",
	} {
		check(t, families, reading{name, of("0"), 0}, reading{name, of("1"), 0})
	}
	check(t, families, reading{"vllm:request_success_total", of("1", "finished_reason", "repetition"), 0})
	series(t, families, "vllm:lora_requests_info", "max_lora", "4", "running_lora_adapters", "", "waiting_lora_adapters", "")
}

func TestMetrics_Scheduled(t *testing.T) {
	m := two()
	m.Scheduled(1, &enginecore.SchedulerStats{
		Running: 3, Waiting: 2, SkippedWaiting: 1, KVCacheUsage: 0.5,
		PrefixCache: enginecore.PrefixCacheStats{Queries: 100, Hits: 64}, Connector: &enginecore.PrefixCacheStats{Queries: 10, Hits: 4},
	})
	families := scrape(t, m)
	check(t, families,
		reading{"vllm:num_requests_running", of("0"), 0},
		reading{"vllm:num_requests_running", of("1"), 3},
		reading{"vllm:num_requests_waiting", of("1"), 3},
		reading{"vllm:num_requests_waiting_by_reason", of("1", "reason", "capacity"), 2},
		reading{"vllm:num_requests_waiting_by_reason", of("1", "reason", "deferred"), 1},
		reading{"vllm:kv_cache_usage_perc", of("1"), 0.5},
		reading{"vllm:prefix_cache_queries_total", of("1"), 100},
		reading{"vllm:prefix_cache_hits_total", of("1"), 64},
		reading{"vllm:external_prefix_cache_queries_total", of("1"), 10},
		reading{"vllm:external_prefix_cache_hits_total", of("1"), 4},
		reading{"vllm:prompt_tokens_cached_by_source_total", of("1", "source", "device"), 64},
		reading{"vllm:prompt_tokens_cached_by_source_total", of("1", "source", "external_unspecified"), 4},
	)
	m.Left(1)
	check(t, scrape(t, m),
		reading{"vllm:num_requests_running", of("1"), 0},
		reading{"vllm:num_requests_waiting", of("1"), 0},
		reading{"vllm:kv_cache_usage_perc", of("1"), 0},
		reading{"vllm:prefix_cache_queries_total", of("1"), 100},
	)
}

func TestMetrics_Step(t *testing.T) {
	m := two()
	m.Step(0, &dispatch.Step{
		Generated: 5, FirstTokens: []float64{0.5, 0.25}, Gaps: []float64{0.125, 0.5, 1}, Preemptions: 2,
		Prefill: enginecore.PrefillStats{Prompt: 30, Computed: 10, Cached: 20, LocalCached: 16, ExternalCached: 4},
	})
	m.Step(0, &dispatch.Step{Generated: 1, Gaps: []float64{0.25}})
	families := scrape(t, m)
	check(t, families,
		reading{"vllm:generation_tokens_total", of("0"), 6},
		reading{"vllm:generation_tokens_total", of("1"), 0},
		reading{"vllm:prompt_tokens_total", of("0"), 30},
		reading{"vllm:prompt_tokens_cached_total", of("0"), 20},
		reading{"vllm:prompt_tokens_by_source_total", of("0", "source", "local_compute"), 10},
		reading{"vllm:prompt_tokens_by_source_total", of("0", "source", "local_cache_hit"), 16},
		reading{"vllm:prompt_tokens_by_source_total", of("0", "source", "external_kv_transfer"), 4},
		reading{"vllm:time_to_first_token_seconds", of("0"), 0.75},
		reading{"vllm:inter_token_latency_seconds", of("0"), 1.875},
		reading{"vllm:iteration_tokens_total", of("0"), 16},
		reading{"vllm:num_preemptions_total", of("0"), 2},
	)
	if n := series(t, families, "vllm:inter_token_latency_seconds", of("0")...).GetHistogram().GetSampleCount(); n != 4 {
		t.Errorf("%d gaps, want 4", n)
	}
}

func TestMetrics_Ended(t *testing.T) {
	m := two()
	m.Ended(0, &dispatch.End{
		Reason: enginecore.FinishLength, Prompt: 10, Generated: 5, Computed: 6, Preemptions: 1, MaxTokens: enginecore.Some[uint32](5),
		Total: 8, Queue: 1, Prefill: 2, Decode: 4, Inference: 6,
	})
	m.Ended(0, &dispatch.End{Reason: enginecore.FinishAbort, Prompt: 7, Total: 1, Choices: 2, MaxGenerated: 5})
	families := scrape(t, m)
	check(t, families,
		reading{"vllm:request_success_total", of("0", "finished_reason", "length"), 1},
		reading{"vllm:request_success_total", of("0", "finished_reason", "abort"), 1},
		reading{"vllm:request_success_total", of("0", "finished_reason", "stop"), 0},
		reading{"vllm:e2e_request_latency_seconds", of("0"), 9},
		reading{"vllm:request_queue_time_seconds", of("0"), 1},
		reading{"vllm:request_prefill_time_seconds", of("0"), 2},
		reading{"vllm:request_decode_time_seconds", of("0"), 4},
		reading{"vllm:request_inference_time_seconds", of("0"), 6},
		reading{"vllm:request_time_per_output_token_seconds", of("0"), 1},
		reading{"vllm:request_prompt_tokens", of("0"), 17},
		reading{"vllm:request_generation_tokens", of("0"), 5},
		reading{"vllm:request_prefill_kv_computed_tokens", of("0"), 6},
		reading{"vllm:request_num_preemptions", of("0"), 1},
		reading{"vllm:request_params_max_tokens", of("0"), 5},
		reading{"vllm:request_params_n", of("0"), 2},
		reading{"vllm:request_max_num_generation_tokens", of("0"), 5},
	)
	for name, want := range map[string]uint64{"vllm:e2e_request_latency_seconds": 2, "vllm:request_params_n": 1, "vllm:request_params_max_tokens": 1} {
		if n := series(t, families, name, of("0")...).GetHistogram().GetSampleCount(); n != want {
			t.Errorf("%s: %d observations, want %d", name, n, want)
		}
	}
}

func TestMetrics_Slept(t *testing.T) {
	m := two()
	for _, c := range []struct {
		level                       uint64
		awake, offloaded, discarded float64
	}{{0, 1, 0, 0}, {1, 0, 1, 0}, {2, 0, 0, 1}, {0, 1, 0, 0}} {
		m.Slept(c.level)
		check(t, scrape(t, m),
			reading{"vllm:engine_sleep_state", of("1", "sleep_state", "awake"), c.awake},
			reading{"vllm:engine_sleep_state", of("1", "sleep_state", "weights_offloaded"), c.offloaded},
			reading{"vllm:engine_sleep_state", of("1", "sleep_state", "discard_all"), c.discarded},
		)
	}
	ended := m.SleepBegan(OperationWake)
	check(t, scrape(t, m), reading{"vllm:sleep_mode_operations_in_flight", []string{"operation", "wake"}, 1})
	ended()
	families := scrape(t, m)
	check(t, families, reading{"vllm:sleep_mode_operations_in_flight", []string{"operation", "wake"}, 0})
	if n := series(t, families, "vllm:sleep_mode_operation_duration_seconds", "operation", "wake").GetHistogram().GetSampleCount(); n != 1 {
		t.Errorf("%d operations, want 1", n)
	}
}

func TestMetrics_HTTP(t *testing.T) {
	m := two()
	chat := Exchange{Route: "/v1/chat/completions", Method: "POST", Status: 200, Took: 250 * time.Millisecond, RequestBytes: 100, ResponseBytes: 900}
	m.HTTP(chat)
	m.HTTP(chat)
	chat.Status, chat.RequestBytes, chat.ResponseBytes = 404, -1, -1
	m.HTTP(chat)
	m.HTTP(Exchange{Method: "BREW", Status: 405})
	m.HTTP(Exchange{Route: "/health", Method: "GET", Status: 200})
	families := scrape(t, m)
	check(t, families,
		reading{"http_requests_total", []string{"handler", "/v1/chat/completions", "method", "POST", "status", "2xx"}, 2},
		reading{"http_requests_total", []string{"handler", "/v1/chat/completions", "method", "POST", "status", "4xx"}, 1},
		reading{"http_requests_total", []string{"handler", "none", "method", "OTHER", "status", "4xx"}, 1},
		reading{"http_request_size_bytes", []string{"handler", "/v1/chat/completions"}, 200},
		reading{"http_response_size_bytes", []string{"handler", "/v1/chat/completions"}, 1800},
		reading{"http_request_duration_seconds", []string{"handler", "/v1/chat/completions", "method", "POST"}, 0.75},
		reading{"http_request_duration_highr_seconds", nil, 0.75},
	)
	if n := len(families["http_requests_total"].GetMetric()); n != 3 {
		t.Errorf("%d series of requests, want 3", n)
	}
}

func TestMetrics_Adapters(t *testing.T) {
	m := two()
	now := time.Unix(2000, 0)
	m.adapters.now = func() time.Time { return now }
	running := []enginecore.LoRACount{{Name: "sql", Count: 2}, {Name: "idle"}, {Name: "art", Count: 1}}
	m.Scheduled(0, &enginecore.SchedulerStats{RunningLoRAs: running, WaitingLoRAs: []enginecore.LoRACount{{Name: "b", Count: 1}}})
	m.Scheduled(1, &enginecore.SchedulerStats{RunningLoRAs: []enginecore.LoRACount{{Name: "sql", Count: 1}}})
	info := func(running, waiting string, changed float64) reading {
		return reading{"vllm:lora_requests_info", []string{"max_lora", "4", "running_lora_adapters", running, "waiting_lora_adapters", waiting}, changed}
	}
	check(t, scrape(t, m), info("art,sql", "b", 2000))
	now = time.Unix(3000, 0)
	m.Scheduled(1, &enginecore.SchedulerStats{RunningLoRAs: []enginecore.LoRACount{{Name: "sql", Count: 5}}})
	check(t, scrape(t, m), info("art,sql", "b", 2000)) // nothing new
	m.Left(0)
	families := scrape(t, m)
	check(t, families, info("sql", "", 3000))
	if n := len(families["vllm:lora_requests_info"].GetMetric()); n != 1 {
		t.Errorf("%d series, want 1", n)
	}
}

func TestMetrics_CacheConfig(t *testing.T) {
	m := New(Options{Model: "tiny", Engines: 2})
	if f := scrape(t, m)["vllm:cache_config_info"]; f != nil {
		t.Errorf("%d series before an engine joined", len(f.GetMetric()))
	}
	m.Joined(0, registration())
	m.Joined(1, &enginecore.ReadyResponse{GPUBlocks: 500, BlockSize: 32})
	families := scrape(t, m)
	check(t, families,
		reading{"vllm:cache_config_info", []string{
			"engine", "0", "block_size", "16", "num_gpu_blocks", "1500", "kv_cache_size_tokens", "16000", "kv_cache_max_concurrency", "3.90625",
			"effective_attention_block_size", "16", "cache_dtype", "auto",
		}, 1},
		reading{"vllm:cache_config_info", []string{"engine", "1", "block_size", "32", "kv_cache_size_tokens", "None", "kv_cache_max_concurrency", "None"}, 1},
	)
}

func TestBucketsTokens(t *testing.T) {
	for longest, want := range map[uint64][]float64{
		0: nil, 1: {1}, 4: {1, 2}, 5: {1, 2, 5}, 4096: {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000},
	} {
		if diff := cmp.Diff(want, bucketsTokens(longest)); diff != "" {
			t.Errorf("up to %d (-want +got):\n%s", longest, diff)
		}
	}
	if n := len(bucketsTokens(1 << 63)); n != 30 {
		t.Errorf("%d bounds, want 30 at most", n)
	}
}

func TestMetrics_MaxModelLen(t *testing.T) {
	m := New(Options{Model: "tiny", Engines: 1, MaxModelLen: 10})
	m.Joined(0, registration())
	if n := len(series(t, scrape(t, m), "vllm:request_prompt_tokens", of("0")...).GetHistogram().GetBucket()); n != 5 {
		t.Errorf("%d buckets, want 1, 2, 5, 10 and the infinite one", n)
	}
}

// What a step of many requests costs.
func BenchmarkMetrics_Step(b *testing.B) {
	m := two()
	step := dispatch.Step{Generated: 512, Gaps: make([]float64, 512)}
	b.ReportAllocs()
	for b.Loop() {
		m.Step(0, &step)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/512, "ns/token")
}

func BenchmarkMetrics_Ended(b *testing.B) {
	m := two()
	end := dispatch.End{Reason: enginecore.FinishStop, Generated: 9, Choices: 1}
	b.ReportAllocs()
	for b.Loop() {
		m.Ended(0, &end)
	}
}
