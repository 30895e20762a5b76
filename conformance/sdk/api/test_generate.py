"""POST /inference/v1/generate: tokens in, tokens out, and the tokens are ours to choose. What ends an answer is tried here."""

import pytest

END = 100257  # what ends a text in the vocabulary of every model here


@pytest.fixture
def ask(client, model, server):
    tokens = server.tokens("one two three four five six seven")

    def ask(trace=tokens, **sampling):
        sampling = {"max_tokens": 50, "trace_decode_token_ids": trace, **sampling}
        return client.post("/generate", body={"model": model, "token_ids": [9906], "sampling_params": sampling}, cast_to=dict)["choices"][0]

    ask.tokens = tokens
    return ask


@pytest.fixture
def client(client):
    """The route lies beside /v1."""
    return client.with_options(base_url=str(client.base_url).removesuffix("v1/") + "inference/v1")


def test_trace(ask):
    """What is traced is answered exactly, and its end is the answer's, or its limit."""
    got = ask(max_tokens=len(ask.tokens))
    assert got["token_ids"] == ask.tokens
    assert ask(max_tokens=3)["token_ids"] == ask.tokens[:3]


def test_stop_token(ask):
    got = ask(stop_token_ids=[ask.tokens[4]])
    assert got["token_ids"] == ask.tokens[:5] and got["finish_reason"] == "stop"


def test_stop_token_after_the_least(ask):
    trace = ask.tokens + ask.tokens
    got = ask(trace, stop_token_ids=[ask.tokens[1]], min_tokens=4)
    assert len(got["token_ids"]) == len(ask.tokens) + 2 and got["finish_reason"] == "stop"


def test_end_of_text(ask):
    trace = ask.tokens[:3] + [END] + ask.tokens
    got = ask(trace)
    assert got["token_ids"] == ask.tokens[:3] + [END] and got["finish_reason"] == "stop"
    got = ask(trace, ignore_eos=True, max_tokens=len(trace))
    assert got["token_ids"] == trace
