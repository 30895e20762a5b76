"""POST /v1/completions."""

import math

import pytest
from asking import PROMPT, check_usage


def ask(client, model, **more):
    return client.completions.create(**{"model": model, "prompt": PROMPT, "max_tokens": 12} | more)


def test_plain(client, model, server):
    got = ask(client, model)
    assert got.id.startswith("cmpl-") and got.object == "text_completion" and got.model == model
    assert [(c.index, c.finish_reason) for c in got.choices] == [(0, "length")]
    assert got.choices[0].text
    check_usage(got.usage, len(server.tokens(PROMPT)), 12)


def test_default_length(client, model):
    got = client.completions.create(model=model, prompt=PROMPT)
    assert got.usage.completion_tokens == 16


def test_one_token(client, model):
    assert ask(client, model, max_tokens=1).usage.completion_tokens == 1


def test_ids_are_the_text(client, model, server):
    got = ask(client, model, max_tokens=50, extra_body={"return_token_ids": True}).choices[0]
    assert len(got.token_ids) == 50
    assert server.text(got.token_ids) == got.text
    assert got.prompt_token_ids == server.tokens(PROMPT)


def test_prompt_of_ids(client, model, server):
    ids = server.tokens(PROMPT)
    got = ask(client, model, prompt=ids, echo=True, max_tokens=3)
    assert got.choices[0].text.startswith(PROMPT)
    check_usage(got.usage, len(ids), 3)


@pytest.mark.parametrize("form", ["texts", "ids"])
def test_several_prompts(client, model, server, form):
    prompts = ["one", "two three", "four five six"]
    ids = [server.tokens(p) for p in prompts]
    got = ask(client, model, prompt=ids if form == "ids" else prompts, echo=True, max_tokens=4, n=2)
    assert [c.index for c in got.choices] == list(range(6))
    for c in got.choices:
        assert c.text.startswith(prompts[c.index // 2])
    check_usage(got.usage, sum(map(len, ids)), 24)


def test_several_choices(client, model, server):
    got = ask(client, model, n=3, max_tokens=5)
    assert [c.index for c in got.choices] == [0, 1, 2]
    check_usage(got.usage, len(server.tokens(PROMPT)), 15)


def test_echo_alone(client, model, server):
    """The prompt is all that is shown, yet vLLM makes a token and counts it."""
    got = ask(client, model, echo=True, max_tokens=0)
    assert got.choices[0].text == PROMPT
    check_usage(got.usage, len(server.tokens(PROMPT)), 1)


def test_stop(client, model):
    stops = ["a", "e", "i", "o"]
    got = ask(client, model, max_tokens=200, stop=stops).choices[0]
    assert got.finish_reason == "stop" and got.stop_reason in stops
    assert not any(s in got.text for s in stops)


def test_stop_included(client, model):
    got = ask(client, model, max_tokens=200, stop=["a", "e", "i", "o"], extra_body={"include_stop_str_in_output": True}).choices[0]
    assert got.finish_reason == "stop" and got.text.endswith(got.stop_reason)


def test_logprobs(client, model):
    got = ask(client, model, max_tokens=9, logprobs=3).choices[0]
    assert "".join(got.logprobs.tokens) == got.text
    assert len(got.logprobs.token_logprobs) == len(got.logprobs.top_logprobs) == 9
    offset = 0
    for i, token in enumerate(got.logprobs.tokens):
        assert got.logprobs.text_offset[i] == offset
        offset += len(token)
        top = got.logprobs.top_logprobs[i]
        assert top[token] == got.logprobs.token_logprobs[i] < 0
        assert 3 <= len(top) <= 4 and sum(map(math.exp, top.values())) < 1


def test_echo_logprobs(client, model, server):
    got = ask(client, model, max_tokens=2, logprobs=1, echo=True).choices[0]
    prompt = len(server.tokens(PROMPT))
    assert "".join(got.logprobs.tokens) == got.text and len(got.logprobs.tokens) == prompt + 2
    assert got.logprobs.token_logprobs[0] is None
    assert all(p < 0 for p in got.logprobs.token_logprobs[1:])


def test_prompt_logprobs(client, model, server):
    got = ask(client, model, extra_body={"prompt_logprobs": 2}).choices[0]
    ids = server.tokens(PROMPT)
    assert len(got.prompt_logprobs) == len(ids) and got.prompt_logprobs[0] is None
    for token, at in zip(ids[1:], got.prompt_logprobs[1:]):
        assert str(token) in at and sum(math.exp(p["logprob"]) for p in at.values()) < 1


def test_stream(client, model):
    events = list(ask(client, model, stream=True, max_tokens=30, extra_body={"return_token_ids": True}))
    assert len({e.id for e in events}) == 1 and all(e.usage is None for e in events)
    assert "".join(e.choices[0].text for e in events)
    assert sum(len(e.choices[0].token_ids or []) for e in events) == 30
    assert [e.choices[0].finish_reason for e in events][-1] == "length"
    assert all(e.choices[0].finish_reason is None for e in events[:-1])


def test_stream_usage(client, model, server):
    *events, last = ask(client, model, stream=True, n=2, stream_options={"include_usage": True})
    assert last.choices == [] and all(e.usage is None for e in events)
    check_usage(last.usage, len(server.tokens(PROMPT)), 24)
    assert {c.index for e in events for c in e.choices} == {0, 1}


def test_stream_running_usage(client, model, server):
    stream = ask(client, model, stream=True, stream_options={"include_usage": True, "continuous_usage_stats": True})
    counts = [e.usage.completion_tokens for e in stream]
    assert counts == sorted(counts) and counts[-1] == 12


def test_stream_is_the_body(client, model):
    """An echoed prompt and a stop string over events: what is streamed is what a body would hold."""
    events = list(ask(client, model, stream=True, echo=True, max_tokens=200, stop=["e", "a"]))
    text = "".join(e.choices[0].text for e in events)
    assert text.startswith(PROMPT) and not any(s in text[len(PROMPT) :] for s in "ea")
    assert events[-1].choices[0].finish_reason == "stop"
