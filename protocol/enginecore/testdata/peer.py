"""Decodes messages with strict msgspec structs, one JSON object a line: {"kind", "line", "hex"}, and answers each with its own encoding.

An array longer than the line knows, an unknown key, a missing one or a wrong type ends the exchange with msgspec's complaint.
"""

import json
import sys
from typing import Any

import msgspec


class Array(msgspec.Struct, array_like=True, forbid_unknown_fields=True):
    """A positional message; strict about its length."""


class Map(msgspec.Struct, forbid_unknown_fields=True):
    """A message with names; strict about them."""


Tensor = tuple[str, list[int], int | msgspec.msgpack.Ext]
Logprobs4 = tuple[Tensor, Tensor, Tensor, None]
Logprobs5 = tuple[Tensor, Tensor, Tensor, None, None]


class Event(Map):
    type: int
    timestamp: float


class Prefill25(Map):
    num_prompt_tokens: int
    num_computed_tokens: int
    num_cached_tokens: int
    num_local_cached_tokens: int
    num_external_cached_tokens: int


class Prefill(Prefill25):
    num_cache_creation_tokens: int


class SpecMetrics(Map):
    num_spec_tokens: int
    histogram: list[int]
    num_draft_tokens: int
    per_step_accepted: list[int]
    per_step_drafted: list[int]


class RequestError(Map):
    code: str
    message: str
    retryable: bool


class Output25(Array):
    request_id: str
    new_token_ids: list[int]
    new_logprobs: Logprobs4 | None = None
    new_prompt_logprobs_tensors: Logprobs4 | None = None
    pooling_output: Tensor | None = None
    finish_reason: int | None = None
    stop_reason: int | str | None = None
    events: list[Event] | None = None
    kv_transfer_params: dict[str, Any] | None = None
    trace_headers: dict[str, Any] | None = None
    prefill_stats: Prefill25 | None = None
    routed_experts: Tensor | None = None
    num_nans_in_logits: int = 0


class Output27(Array):
    request_id: str
    new_token_ids: list[int]
    new_logprobs: Logprobs4 | None = None
    new_prompt_logprobs_tensors: Logprobs4 | None = None
    pooling_output: Tensor | None = None
    finish_reason: int | None = None
    stop_reason: int | str | None = None
    events: list[Event] | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    trace_headers: dict[str, Any] | None = None
    prefill_stats: Prefill | None = None
    routed_experts: Tensor | None = None
    num_nans_in_logits: int = 0


class Output33(Array):
    request_id: str
    new_token_ids: list[int]
    new_logprobs: Logprobs4 | None = None
    new_prompt_logprobs_tensors: Logprobs5 | None = None
    pooling_output: Tensor | None = None
    finish_reason: int | None = None
    stop_reason: int | str | None = None
    events: list[Event] | None = None
    kv_transfer_params: dict[str, Any] | None = None
    ec_transfer_params: dict[str, Any] | None = None
    trace_headers: dict[str, Any] | None = None
    prefill_stats: Prefill | None = None
    routed_experts: Tensor | None = None
    num_nans_in_logits: int = 0
    mm_cache_miss_hashes: list[str] | None = None
    new_sampling_mask: list[Any] | None = None
    spec_decode_metrics: SpecMetrics | None = None
    prompt_token_id_logprobs: Tensor | None = None
    error: RequestError | None = None


class PrefixCache(Map):
    reset: bool
    requests: int
    queries: int
    hits: int
    preempted_requests: int
    preempted_queries: int
    preempted_hits: int


class PrefixCache33(PrefixCache):
    hits_by_source: dict[str, int]


class SpecDecoding(Map):
    num_spec_tokens: int
    num_drafts: int
    num_draft_tokens: int
    num_accepted_tokens: int
    num_accepted_tokens_per_pos: list[int]
    num_draft_tokens_per_pos: list[int]


class Stats(Map):
    num_running_reqs: int
    num_waiting_reqs: int
    num_skipped_waiting_reqs: int
    step_counter: int
    current_wave: int
    kv_cache_usage: float
    prefix_cache_stats: PrefixCache
    connector_prefix_cache_stats: PrefixCache | None
    kv_cache_eviction_events: list[Any]
    spec_decoding_stats: SpecDecoding | None
    kv_connector_stats: dict[str, Any] | None
    waiting_lora_adapters: dict[str, int]
    running_lora_adapters: dict[str, int]
    iteration_details: dict[str, Any] | None
    cudagraph_stats: dict[str, Any] | None
    perf_stats: dict[str, Any] | None


class Stats33(Stats):
    prefix_cache_stats: PrefixCache33
    connector_prefix_cache_stats: PrefixCache33 | None
    num_kv_fetch_reqs_by_stage: dict[str, int]
    ec_connector_stats: dict[str, Any] | None


class UtilityOutput(Array):
    call_id: int
    failure_message: str | None = None
    result: tuple[None, Any] | None = None


class Outputs25(Array):
    engine_index: int = 0
    outputs: list[Output25] = []
    scheduler_stats: Stats | None = None
    timestamp: float = 0.0
    utility_output: UtilityOutput | None = None
    finished_requests: list[str] | None = None
    wave_complete: int | None = None
    start_wave: int | None = None


class Outputs27(Array):
    engine_index: int = 0
    outputs: list[Output27] = []
    scheduler_stats: Stats | None = None
    timestamp: float = 0.0
    utility_output: UtilityOutput | None = None
    finished_requests: list[str] | None = None
    wave_complete: int | None = None
    start_wave: int | None = None


class Outputs33(Array):
    engine_index: int = 0
    outputs: list[Output33] = []
    scheduler_stats: Stats33 | None = None
    timestamp: float = 0.0
    utility_output: UtilityOutput | None = None
    finished_requests: list[str] | None = None
    wave_complete: int | None = None
    start_wave: int | None = None
    weight_version: str | None = None


class Repetition(Map):
    max_pattern_size: int
    min_pattern_size: int
    min_count: int


class Sampling(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    n: int = 1
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    seed: int | None = None
    stop: list[str] | None = None
    stop_token_ids: list[int] | None = None
    ignore_eos: bool = False
    max_tokens: int | None = 16
    min_tokens: int = 0
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    logprob_token_ids: list[int] | None = None
    flat_logprobs: bool = False
    detokenize: bool = True
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    include_stop_str_in_output: bool = False
    output_kind: int = 0
    stream_interval: int | None = None
    skip_clone: bool = False
    output_text_buffer_length: int = 0
    _eos_token_id: int | None = None
    _all_stop_token_ids: list[int] = []
    structured_outputs: dict[str, Any] | None = None
    logit_bias: dict[int, float] | None = None
    allowed_token_ids: list[int] | None = None
    extra_args: dict[str, Any] | None = None
    bad_words: list[str] | None = None
    _bad_words_token_ids: list[list[int]] | None = None
    skip_reading_prefix_cache: bool | None = None
    thinking_token_budget: int | None = None
    repetition_detection: Repetition | None = None
    routed_experts_prompt_start: int = 0


class LoRA27(Array):
    lora_name: str
    lora_int_id: int
    lora_path: str
    base_model_name: str | None
    tensorizer_config_dict: dict[str, Any] | None
    load_inplace: bool
    is_3d_lora_weight: bool


class LoRA33(Array):
    lora_name: str
    lora_int_id: int
    lora_path: str
    base_model_name: str | None
    load_inplace: bool
    is_3d_lora_weight: bool


class Add27(Array):
    request_id: str
    prompt_token_ids: list[int] | None
    mm_features: list[Any] | None
    sampling_params: Sampling | None
    pooling_params: list[Any] | None
    arrival_time: float
    lora_request: LoRA27 | None
    cache_salt: str | None
    data_parallel_rank: int | None
    prompt_embeds: Tensor | None
    prompt_is_token_ids: list[bool] | None
    client_index: int
    current_wave: int
    priority: int
    trace_headers: dict[str, str] | None
    resumable: bool
    external_req_id: str | None
    reasoning_ended: bool | None
    reasoning_parser_kwargs: dict[str, Any] | None
    abort_immediately: bool


class Add33(Array):
    request_id: str
    prompt_token_ids: list[int] | None
    mm_features: list[Any] | None
    sampling_params: Sampling | None
    pooling_params: list[Any] | None
    arrival_time: float
    lora_request: LoRA33 | None
    cache_salt: str | None
    data_parallel_rank: int | None
    prompt_embeds: Tensor | None
    prompt_is_token_ids: list[bool] | None
    client_index: int
    current_wave: int
    priority: int
    trace_headers: dict[str, str] | None
    resumable: bool
    external_req_id: str | None
    reasoning_ended: bool | None
    reasoning_parser_kwargs: dict[str, Any] | None
    abort_immediately: bool
    session_id: str | None
    kv_hints: dict[str, Any] | None


class KVEvents(Map):
    enable_kv_cache_events: bool
    publisher: str
    endpoint: str
    replay_endpoint: str | None
    buffer_steps: int
    hwm: int
    max_queue_size: int
    topic: str


class Ready(Map):
    max_model_len: int
    num_gpu_blocks: int
    block_size: int
    dp_stats_address: str | None
    dtype: str
    vllm_version: str
    world_size: int
    data_parallel_size: int
    tensor_parallel_size: int
    pipeline_parallel_size: int
    decode_context_parallel_size: int
    data_parallel_rank: int
    max_num_seqs: int
    max_num_batched_tokens: int
    instance_id: str
    supports_lora: bool
    max_loras: int
    mamba_block_size: int | None
    kv_cache_size_tokens: int | None
    kv_cache_max_concurrency: float | None
    kv_events_config: KVEvents | None
    weight_transfer_backend: str | None
    enable_sleep_mode: bool
    supports_draft_weight_updates: bool
    effective_attention_block_size: int | None
    coord_store_port: int
    coordinator_input_address: str | None
    coordinator_output_address: str | None


class Hello(Map, omit_defaults=True):
    status: str
    local: bool
    headless: bool
    parallel_config_hash: str | None = None


class Addresses(Map):
    inputs: list[str]
    outputs: list[str]
    coordinator_input: str | None
    coordinator_output: str | None
    frontend_stats_publish_address: str | None


class Init(Map):
    addresses: Addresses
    parallel_config: dict[str, Any]


class Utility(Array):
    client_index: int
    call_id: int
    method: str
    args: list[Any]


BY_LINE = {
    "outputs": {"0.25": Outputs25, "0.26": Outputs27, "0.27": Outputs27, "0.32": Outputs27, "0.33": Outputs33},
    "add": {"0.25": Add27, "0.27": Add27, "0.32": Add27, "0.33": Add33},
}
FOR_ALL = {"ready": Ready, "hello": Hello, "init": Init, "utility": Utility, "abort": list[str], "wave": tuple[int, int | bytes | None]}


def main() -> None:
    encode = msgspec.msgpack.Encoder().encode
    for line in sys.stdin:
        ask = json.loads(line)
        kind = FOR_ALL.get(ask["kind"]) or BY_LINE[ask["kind"]][ask["line"]]
        try:
            value = msgspec.msgpack.decode(bytes.fromhex(ask["hex"]), type=kind)
        except msgspec.MsgspecError as error:
            print(json.dumps({"error": str(error)}), flush=True)
            continue
        print(json.dumps({"hex": encode(value).hex()}), flush=True)


main()
