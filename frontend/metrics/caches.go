package metrics

import (
	"strconv"
	"sync"

	"vllm-vcr/protocol/enginecore"

	"github.com/prometheus/client_golang/prometheus"
)

// caches shows the cache configuration of each engine that has joined, as the labels of a series whose value is 1.
type caches struct {
	desc *prometheus.Desc

	mu      sync.Mutex
	engines []*enginecore.ReadyResponse // nil = never joined
}

// cacheDefaults are the settings of vLLM's cache configuration that an engine doesn't tell, with vLLM's defaults.
var cacheDefaults = [][2]string{
	{"_block_size_resolved", "True"},
	{"cache_dtype", "auto"},
	{"cache_hit_alignment_tokens", "None"},
	{"enable_mamba_shared_prefix_checkpoint", "False"},
	{"enable_prefix_caching", "True"},
	{"gpu_memory_utilization", "0.92"},
	{"hash_block_size", "None"},
	{"is_attention_free", "False"},
	{"kv_cache_dtype_skip_layers", "[]"},
	{"kv_cache_layout", "None"},
	{"kv_cache_memory_bytes", "None"},
	{"kv_offloading_backend", "native"},
	{"kv_offloading_size", "None"},
	{"kv_sharing_fast_prefill", "False"},
	{"mamba_cache_dtype", "auto"},
	{"mamba_cache_mode", "none"},
	{"mamba_page_size_padded", "None"},
	{"mamba_ssm_cache_dtype", "float32"},
	{"num_cpu_blocks", "None"},
	{"num_gpu_blocks_override", "None"},
	{"prefix_cache_retention_interval", "0"},
	{"prefix_caching_hash_algo", "sha256"},
	{"prefix_match_unit", "None"},
	{"replayssm_buffer_len", "16"},
	{"simple_cpu_offload_num_blocks", "None"},
	{"skip_page_size_padded", "None"},
	{"sliding_window", "None"},
	{"swa_bounded_replay", "True"},
	{"use_kda_recoverssm", "False"},
	{"use_replayssm", "False"},
	{"user_specified_block_size", "False"},
}

// cacheLabels are what an engine tells, in the order of cacheValues.
var cacheLabels = []string{
	"engine", "block_size", "num_gpu_blocks", "kv_cache_size_tokens", "kv_cache_max_concurrency", "mamba_block_size",
	"effective_attention_block_size",
}

func newCaches(engines int) *caches {
	fixed := prometheus.Labels{}
	for _, d := range cacheDefaults {
		fixed[d[0]] = d[1]
	}
	return &caches{
		desc:    prometheus.NewDesc("vllm:cache_config_info", "Information of the LLMEngine CacheConfig", cacheLabels, fixed),
		engines: make([]*enginecore.ReadyResponse, engines),
	}
}

func (c *caches) joined(rank int, r *enginecore.ReadyResponse) {
	own := *r
	c.mu.Lock()
	defer c.mu.Unlock()
	c.engines[rank] = &own
}

// Describe implements prometheus.Collector.
func (c *caches) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector. As with vLLM the number of blocks is the sum over the engines.
func (c *caches) Collect(to chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	blocks := uint64(0)
	for _, r := range c.engines {
		if r != nil {
			blocks += r.GPUBlocks
		}
	}
	for rank, r := range c.engines {
		if r != nil {
			to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, 1, cacheValues(rank, r, blocks)...)
		}
	}
}

func cacheValues(rank int, r *enginecore.ReadyResponse, blocks uint64) []string {
	concurrency := "None"
	if r.KVCacheConcurrency.Set {
		concurrency = strconv.FormatFloat(r.KVCacheConcurrency.Value, 'g', -1, 64)
	}
	return []string{
		strconv.Itoa(rank), strconv.FormatUint(r.BlockSize, 10), strconv.FormatUint(blocks, 10), optional(r.KVCacheTokens), concurrency,
		optional(r.MambaBlockSize), optional(r.AttentionBlockSize),
	}
}

func optional(v enginecore.Optional[uint64]) string {
	if !v.Set {
		return "None"
	}
	return strconv.FormatUint(v.Value, 10)
}
