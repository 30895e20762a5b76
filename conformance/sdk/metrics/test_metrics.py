"""GET /metrics through Prometheus' own parser: of a server with VCR_ENGINES engines that nobody has asked for anything yet."""

import os
import time
import urllib.request

import openai
import pytest
from asking import CONVERSATION, MODEL, ROOT, options
from prometheus_client.parser import text_string_to_metric_families

ENGINES = {str(i) for i in range(int(os.environ["VCR_ENGINES"]))}
GAUGES = ["num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "engine_sleep_state"]
COUNTERS = [
    "prefix_cache_queries",
    "prefix_cache_hits",
    "prompt_tokens",
    "generation_tokens",
    "num_preemptions",
    "request_success",
]
HISTOGRAMS = [
    "time_to_first_token_seconds",
    "inter_token_latency_seconds",
    "e2e_request_latency_seconds",
    "request_queue_time_seconds",
    "request_prefill_time_seconds",
    "request_decode_time_seconds",
    "request_inference_time_seconds",
    "request_prompt_tokens",
    "request_generation_tokens",
    "request_params_max_tokens",
    "request_params_n",
    "iteration_tokens_total",
]


def scrape():
    """The families by name. A name that comes twice, or a line that the parser doesn't take, fails."""
    with urllib.request.urlopen(ROOT + "/metrics", timeout=30) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        families = list(text_string_to_metric_families(answer.read().decode()))
    by_name = {f.name: f for f in families}
    assert len(by_name) == len(families)
    return by_name


def total(families, name, sample="", **labels):
    """The sum over all engines of the samples of one name."""
    found = [s.value for s in families["vllm:" + name].samples if s.name == "vllm:" + name + sample and labels.items() <= s.labels.items()]
    assert found, f"no sample {name}{sample} with {labels}"
    return sum(found)


@pytest.fixture(scope="module")
def before():
    return scrape()


@pytest.fixture(scope="module")
def after(before):
    """What is told once requests of every end have been made: five whole ones of ten tokens and two choices, one that stops early."""
    with openai.OpenAI(**options()) as client:
        for _ in range(5):
            client.chat.completions.create(model=MODEL, messages=CONVERSATION, max_completion_tokens=10, n=2)
        client.completions.create(model=MODEL, prompt="x", max_tokens=4000, stop=["e", "a"])
    return scrape()


def test_there_before_traffic(before):
    for names, kind in ((GAUGES, "gauge"), (COUNTERS, "counter"), (HISTOGRAMS, "histogram")):
        for name in names:
            family = before["vllm:" + name]
            assert family.type == kind and family.documentation, name
            assert {s.labels["engine"] for s in family.samples} == ENGINES, name
            assert {s.labels["model_name"] for s in family.samples} == {MODEL}, name


def test_nothing_before_traffic(before):
    for name in COUNTERS:
        assert total(before, name, "_total") == 0, name
    for name in HISTOGRAMS:
        assert total(before, name, "_count") == 0, name


def test_finish_reasons(before):
    reasons = {s.labels["finished_reason"] for s in before["vllm:request_success"].samples if s.name.endswith("_total")}
    assert {"stop", "length", "abort", "error"} <= reasons


def test_cache_config(before):
    samples = before["vllm:cache_config_info"].samples
    assert {s.labels["engine"] for s in samples} == ENGINES
    assert all(s.value == 1 and s.labels["block_size"] == "16" for s in samples)


def test_counted(after):
    assert total(after, "request_success", "_total", finished_reason="length") == 10
    assert total(after, "request_success", "_total") == 11
    assert total(after, "generation_tokens", "_total") >= 101
    assert total(after, "time_to_first_token_seconds", "_count") == 11
    assert total(after, "e2e_request_latency_seconds", "_count") == 11
    assert total(after, "request_prompt_tokens", "_sum") == total(after, "prompt_tokens", "_total") > 0


def test_gauges_go_back(after):
    """An engine tells that it has let a stopped request go some milliseconds after the answer."""
    deadline = time.monotonic() + 2
    while any(total(scrape(), name) for name in GAUGES[:3]):
        assert time.monotonic() < deadline


def test_histograms_hold_together(after):
    """Buckets grow, and the last one is the count."""
    for name in HISTOGRAMS:
        for engine in ENGINES:
            of_engine = [s for s in after["vllm:" + name].samples if s.labels["engine"] == engine]
            buckets = [s.value for s in of_engine if s.name.endswith("_bucket")]
            (count,) = [s.value for s in of_engine if s.name.endswith("_count")]
            assert buckets == sorted(buckets) and buckets[-1] == count, name


def test_http(after):
    requests = after["http_requests"].samples
    assert sum(s.value for s in requests if s.name == "http_requests_total" and s.labels["handler"] == "/v1/chat/completions") == 5
