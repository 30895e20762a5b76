package metrics

import (
	"vllm-vcr/protocol/enginecore"

	"github.com/prometheus/client_golang/prometheus"
)

// engine holds the series of one engine.
type engine struct {
	rank string

	running, waiting, capacity, deferred, cacheUsage prometheus.Gauge
	awake, offloaded, discarded                      prometheus.Gauge

	queries, hits, externalQueries, externalHits prometheus.Counter
	preemptions, prompt, cached, generated       prometheus.Counter
	computed, localCached, externalCached        prometheus.Counter // prompt tokens by source
	device, external                             prometheus.Counter // hits by tier
	success                                      map[enginecore.FinishReason]prometheus.Counter

	firstToken, gap, iteration                           prometheus.Observer
	total, queue, prefill, decode, inference, perToken   prometheus.Observer
	promptTokens, generatedTokens, computedTokens        prometheus.Observer
	maxGenerated, choices, maxTokens, requestPreemptions prometheus.Observer
}

// reasons are those a request can end for.
var reasons = []enginecore.FinishReason{
	enginecore.FinishStop, enginecore.FinishLength, enginecore.FinishAbort, enginecore.FinishError, enginecore.FinishRepetition,
}

func (f families) engines(n int) []engine {
	all := newEngines(n)
	f.load(all)
	f.sleep(all)
	f.caches(all)
	f.tokens(all)
	f.endings(all)
	f.latencies(all)
	f.counts(all)
	f.absent(all)
	return all
}

func (f families) load(all []engine) {
	f.gauges(all, "vllm:num_requests_running", "Number of requests in model execution batches.",
		func(e *engine) *prometheus.Gauge { return &e.running })
	f.gauges(all, "vllm:num_requests_waiting", "Number of requests waiting to be processed.",
		func(e *engine) *prometheus.Gauge { return &e.waiting })
	reason := f.gauge("vllm:num_requests_waiting_by_reason", "Number of waiting requests by reason. Reason labels: "+
		"'capacity' = waiting for scheduling capacity; 'deferred' = deferred by transient constraints (LoRA budget, KV transfer, "+
		"blocked status). Sum of all reasons equals vllm:num_requests_waiting.", by("reason")...)
	for i := range all {
		all[i].capacity = reason.WithLabelValues(all[i].rank, f.model, "capacity")
		all[i].deferred = reason.WithLabelValues(all[i].rank, f.model, "deferred")
	}
	f.gauges(all, "vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.",
		func(e *engine) *prometheus.Gauge { return &e.cacheUsage })
}

func (f families) sleep(all []engine) {
	state := f.gauge("vllm:engine_sleep_state", "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is "+
		"awake; weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.", by("sleep_state")...)
	for i := range all {
		all[i].awake = state.WithLabelValues(all[i].rank, f.model, "awake")
		all[i].offloaded = state.WithLabelValues(all[i].rank, f.model, "weights_offloaded")
		all[i].discarded = state.WithLabelValues(all[i].rank, f.model, "discard_all")
		all[i].awake.Set(1)
	}
}

func (f families) caches(all []engine) {
	f.counters(all, "vllm:prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens.",
		func(e *engine) *prometheus.Counter { return &e.queries })
	f.counters(all, "vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.",
		func(e *engine) *prometheus.Counter { return &e.hits })
	f.counters(all, "vllm:external_prefix_cache_queries_total", "External prefix cache queries from KV connector cross-instance "+
		"cache sharing, in terms of number of queried tokens.", func(e *engine) *prometheus.Counter { return &e.externalQueries })
	f.counters(all, "vllm:external_prefix_cache_hits_total", "External prefix cache hits from KV connector cross-instance cache "+
		"sharing, in terms of number of cached tokens.", func(e *engine) *prometheus.Counter { return &e.externalHits })
	tier := f.counter("vllm:prompt_tokens_cached_by_source_total", "Prefix-cache hit tokens by the cache tier that supplied them: "+
		"device (local HBM), host (offloaded to DRAM), disk, p2p (transferred from another vLLM instance) or external_unspecified. "+
		"Counted at admission; sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.", by("source")...)
	for i := range all {
		for _, unused := range []string{"host", "disk", "p2p"} {
			tier.WithLabelValues(all[i].rank, f.model, unused)
		}
		all[i].device = tier.WithLabelValues(all[i].rank, f.model, "device")
		all[i].external = tier.WithLabelValues(all[i].rank, f.model, "external_unspecified")
	}
}

func (f families) tokens(all []engine) {
	f.counters(all, "vllm:num_preemptions_total", "Cumulative number of preemption from the engine.",
		func(e *engine) *prometheus.Counter { return &e.preemptions })
	f.counters(all, "vllm:prompt_tokens_total", "Number of prefill tokens processed.",
		func(e *engine) *prometheus.Counter { return &e.prompt })
	f.counters(all, "vllm:prompt_tokens_cached_total", "Number of cached prompt tokens (local + external).",
		func(e *engine) *prometheus.Counter { return &e.cached })
	f.counters(all, "vllm:generation_tokens_total", "Number of generation tokens processed.",
		func(e *engine) *prometheus.Counter { return &e.generated })
	source := f.counter("vllm:prompt_tokens_by_source_total", "Number of prompt tokens by source.", by("source")...)
	for i := range all {
		all[i].computed = source.WithLabelValues(all[i].rank, f.model, "local_compute")
		all[i].localCached = source.WithLabelValues(all[i].rank, f.model, "local_cache_hit")
		all[i].externalCached = source.WithLabelValues(all[i].rank, f.model, "external_kv_transfer")
	}
}

func (f families) endings(all []engine) {
	success := f.counter("vllm:request_success_total", "Count of successfully processed requests.", by("finished_reason")...)
	for i := range all {
		all[i].success = map[enginecore.FinishReason]prometheus.Counter{}
		for _, r := range reasons {
			all[i].success[r] = success.WithLabelValues(all[i].rank, f.model, r.String())
		}
	}
}

func (f families) latencies(all []engine) {
	f.histograms(all, "vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", bucketsFirstToken,
		func(e *engine) *prometheus.Observer { return &e.firstToken })
	f.histograms(all, "vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", bucketsToken,
		func(e *engine) *prometheus.Observer { return &e.gap })
	f.histograms(all, "vllm:request_time_per_output_token_seconds", "Histogram of time_per_output_token_seconds per request.",
		bucketsToken, func(e *engine) *prometheus.Observer { return &e.perToken })
	f.histograms(all, "vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", bucketsRequest,
		func(e *engine) *prometheus.Observer { return &e.total })
	f.histograms(all, "vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", bucketsRequest,
		func(e *engine) *prometheus.Observer { return &e.queue })
	f.histograms(all, "vllm:request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", bucketsRequest,
		func(e *engine) *prometheus.Observer { return &e.inference })
	f.histograms(all, "vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", bucketsRequest,
		func(e *engine) *prometheus.Observer { return &e.prefill })
	f.histograms(all, "vllm:request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", bucketsRequest,
		func(e *engine) *prometheus.Observer { return &e.decode })
}

func (f families) counts(all []engine) {
	f.histograms(all, "vllm:iteration_tokens_total", "Histogram of number of tokens per engine_step.", bucketsIteration,
		func(e *engine) *prometheus.Observer { return &e.iteration })
	f.histograms(all, "vllm:request_params_n", "Histogram of the n request parameter.", bucketsChoices,
		func(e *engine) *prometheus.Observer { return &e.choices })
	f.histograms(all, "vllm:request_num_preemptions", "Histogram of the number of times a request was preempted.", bucketsPreemptions,
		func(e *engine) *prometheus.Observer { return &e.requestPreemptions })
}

// sizes makes the histograms whose buckets depend on the longest request.
func (f families) sizes(all []engine, maxModelLen uint64) {
	buckets := bucketsTokens(maxModelLen)
	f.histograms(all, "vllm:request_prompt_tokens", "Number of prefill tokens processed.", buckets,
		func(e *engine) *prometheus.Observer { return &e.promptTokens })
	f.histograms(all, "vllm:request_generation_tokens", "Number of generation tokens processed.", buckets,
		func(e *engine) *prometheus.Observer { return &e.generatedTokens })
	f.histograms(all, "vllm:request_max_num_generation_tokens", "Histogram of maximum number of requested generation tokens.",
		buckets, func(e *engine) *prometheus.Observer { return &e.maxGenerated })
	f.histograms(all, "vllm:request_params_max_tokens", "Histogram of the max_tokens request parameter.", buckets,
		func(e *engine) *prometheus.Observer { return &e.maxTokens })
	f.histograms(all, "vllm:request_prefill_kv_computed_tokens", "Histogram of new KV tokens computed during prefill (excluding "+
		"cached tokens).", buckets, func(e *engine) *prometheus.Observer { return &e.computedTokens })
}

// absent makes what dashboards look for although nothing here can count it.
func (f families) absent(all []engine) {
	const mfu = " per GPU (for Model Flops Utilization calculations)."
	f.zeros(all, "vllm:estimated_flops_per_gpu_total", "Estimated number of floating point operations"+mfu)
	f.zeros(all, "vllm:estimated_read_bytes_per_gpu_total", "Estimated number of bytes read from memory"+mfu)
	f.zeros(all, "vllm:estimated_write_bytes_per_gpu_total", "Estimated number of bytes written to memory"+mfu)
	f.zeros(all, "vllm:mm_cache_queries_total", "Multi-modal cache queries, in terms of number of queried items.")
	f.zeros(all, "vllm:mm_cache_hits_total", "Multi-modal cache hits, in terms of number of cached items.")
	rejections := f.counter("vllm:admission_rejections_total", "Number of admission attempts rejected by a queue limit, by reason.",
		"model_name", "reason")
	rejections.WithLabelValues(f.model, "max_num_queued_reqs")
	rejections.WithLabelValues(f.model, "max_num_queued_tokens")
}
