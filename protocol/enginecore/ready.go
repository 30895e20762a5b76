package enginecore

import "github.com/tinylib/msgp/msgp"

// ReadyResponse is what an engine registers with, first on every data input socket. It holds the keys of all lines: no frontend
// minds one it doesn't know.
type ReadyResponse struct {
	MaxModelLen                uint64
	GPUBlocks                  uint64 // of the prefix cache; a frontend adds them up over its engines
	BlockSize                  uint64 // tokens
	StatsAddress               string // where a coordinator publishes; "" = nil
	DType                      string // float16, bfloat16 or float32; the Rust frontend takes no other
	Version                    string // the advertised release: [Version.String]
	WorldSize                  uint64 // without data parallelism
	DataParallelSize           uint64 // see [Version.DataParallelSize]
	TensorParallelSize         uint64
	PipelineParallelSize       uint64
	DecodeContextParallelSize  uint64
	DataParallelRank           uint64
	MaxNumSeqs                 uint64
	MaxNumBatchedTokens        uint64
	InstanceID                 string
	SupportsLoRA               bool
	MaxLoRAs                   uint64
	MambaBlockSize             Optional[uint64]
	KVCacheTokens              Optional[uint64]
	KVCacheConcurrency         Optional[float64] // requests of full length that fit into the cache
	KVEvents                   *KVEventsConfig   // nil = no events
	WeightTransferBackend      string            // "" = nil
	EnableSleepMode            bool
	SupportsDraftWeightUpdates bool
	AttentionBlockSize         Optional[uint64] // tokens
	CoordStorePort             uint64
	CoordinatorInput           string // "" = nil
	CoordinatorOutput          string // "" = nil
}

// AppendReady appends a registration. Python frontends want every key to be there, nil or not.
func AppendReady(b []byte, r *ReadyResponse) []byte {
	b = msgp.AppendMapHeader(b, 28)
	b = appendReadySizes(b, r)
	b = appendBoolField(b, "supports_lora", r.SupportsLoRA)
	b = appendUintField(b, "max_loras", r.MaxLoRAs)
	b = appendOptionalUint(msgp.AppendString(b, "mamba_block_size"), r.MambaBlockSize)
	b = appendOptionalUint(msgp.AppendString(b, "kv_cache_size_tokens"), r.KVCacheTokens)
	b = appendOptionalFloat(msgp.AppendString(b, "kv_cache_max_concurrency"), r.KVCacheConcurrency)
	b = appendKVEvents(msgp.AppendString(b, "kv_events_config"), r.KVEvents)
	b = appendTextField(b, "weight_transfer_backend", r.WeightTransferBackend)
	b = appendBoolField(b, "enable_sleep_mode", r.EnableSleepMode)
	b = appendBoolField(b, "supports_draft_weight_updates", r.SupportsDraftWeightUpdates)
	b = appendOptionalUint(msgp.AppendString(b, "effective_attention_block_size"), r.AttentionBlockSize)
	b = appendUintField(b, "coord_store_port", r.CoordStorePort)
	b = appendTextField(b, "coordinator_input_address", r.CoordinatorInput)
	return appendTextField(b, "coordinator_output_address", r.CoordinatorOutput)
}

// appendReadySizes writes the 15 keys that the lines before 0.33 require.
func appendReadySizes(b []byte, r *ReadyResponse) []byte {
	b = appendUintField(b, "max_model_len", r.MaxModelLen)
	b = appendUintField(b, "num_gpu_blocks", r.GPUBlocks)
	b = appendUintField(b, "block_size", r.BlockSize)
	b = appendTextField(b, "dp_stats_address", r.StatsAddress)
	b = appendStringField(b, "dtype", r.DType)
	b = appendStringField(b, "vllm_version", r.Version)
	b = appendUintField(b, "world_size", r.WorldSize)
	b = appendUintField(b, "data_parallel_size", r.DataParallelSize)
	b = appendUintField(b, "tensor_parallel_size", r.TensorParallelSize)
	b = appendUintField(b, "pipeline_parallel_size", r.PipelineParallelSize)
	b = appendUintField(b, "decode_context_parallel_size", r.DecodeContextParallelSize)
	b = appendUintField(b, "data_parallel_rank", r.DataParallelRank)
	b = appendUintField(b, "max_num_seqs", r.MaxNumSeqs)
	b = appendUintField(b, "max_num_batched_tokens", r.MaxNumBatchedTokens)
	return appendStringField(b, "instance_id", r.InstanceID)
}

// DecodeReady reads a registration.
func DecodeReady(b []byte) (ReadyResponse, error) {
	var r ReadyResponse
	d := decoder{b: b}
	d.fields(func(key []byte) {
		switch string(key) {
		case "dp_stats_address":
			r.StatsAddress = d.string()
		case "dtype":
			r.DType = d.string()
		case "vllm_version":
			r.Version = d.string()
		case "instance_id":
			r.InstanceID = d.string()
		case "kv_events_config":
			r.KVEvents = d.kvEvents()
		default:
			d.readyNumber(&r, key)
		}
	})
	return r, d.end("ready response")
}

func (d *decoder) readyNumber(r *ReadyResponse, key []byte) {
	switch string(key) {
	case "max_model_len":
		r.MaxModelLen = d.uint()
	case "num_gpu_blocks":
		r.GPUBlocks = d.uint()
	case "block_size":
		r.BlockSize = d.uint()
	case "world_size":
		r.WorldSize = d.uint()
	case "data_parallel_size":
		r.DataParallelSize = d.uint()
	case "tensor_parallel_size":
		r.TensorParallelSize = d.uint()
	case "pipeline_parallel_size":
		r.PipelineParallelSize = d.uint()
	case "decode_context_parallel_size":
		r.DecodeContextParallelSize = d.uint()
	case "data_parallel_rank":
		r.DataParallelRank = d.uint()
	case "max_num_seqs":
		r.MaxNumSeqs = d.uint()
	case "max_num_batched_tokens":
		r.MaxNumBatchedTokens = d.uint()
	default:
		d.readyOption(r, key)
	}
}

func (d *decoder) readyOption(r *ReadyResponse, key []byte) {
	switch string(key) {
	case "supports_lora":
		r.SupportsLoRA = d.bool()
	case "max_loras":
		r.MaxLoRAs = d.uint()
	case "mamba_block_size":
		r.MambaBlockSize = d.optionalUint()
	case "kv_cache_size_tokens":
		r.KVCacheTokens = d.optionalUint()
	case "kv_cache_max_concurrency":
		r.KVCacheConcurrency = d.optionalFloat()
	case "weight_transfer_backend":
		r.WeightTransferBackend = d.string()
	case "enable_sleep_mode":
		r.EnableSleepMode = d.bool()
	case "supports_draft_weight_updates":
		r.SupportsDraftWeightUpdates = d.bool()
	case "effective_attention_block_size":
		r.AttentionBlockSize = d.optionalUint()
	case "coord_store_port":
		r.CoordStorePort = d.uint()
	case "coordinator_input_address":
		r.CoordinatorInput = d.string()
	case "coordinator_output_address":
		r.CoordinatorOutput = d.string()
	default:
		d.skip()
	}
}
