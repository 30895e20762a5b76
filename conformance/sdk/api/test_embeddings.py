"""POST /v1/embeddings. The SDK asks for base64 by itself, and for floats only where it is told to."""

import math

import pytest
from asking import PROMPT


def ask(client, model, **more):
    return client.embeddings.create(**{"model": model, "input": PROMPT} | more)


def length(vector):
    return math.sqrt(sum(x * x for x in vector))


def test_plain(client, model, server):
    got = ask(client, model)
    assert got.object == "list" and got.model == model and [d.index for d in got.data] == [0]
    assert len(got.data[0].embedding) > 1 and math.isclose(length(got.data[0].embedding), 1, rel_tol=1e-3)
    count = len(server.tokens(PROMPT))
    assert (got.usage.prompt_tokens, got.usage.total_tokens) == (count, count)


def test_floats_are_base64(client, model):
    floats = ask(client, model, encoding_format="float").data[0].embedding
    assert floats == pytest.approx(ask(client, model).data[0].embedding, abs=1e-6)


@pytest.mark.parametrize("form", ["texts", "ids"])
def test_several(client, model, server, form):
    texts = ["one", "two three", "four five six"]
    ids = [server.tokens(t) for t in texts]
    got = ask(client, model, input=ids if form == "ids" else texts)
    assert [d.index for d in got.data] == [0, 1, 2]
    assert got.usage.prompt_tokens == sum(map(len, ids))
    for text, d in zip(texts, got.data):
        assert d.embedding == ask(client, model, input=text).data[0].embedding


def test_different_texts_differ(client, model):
    one, other = (d.embedding for d in ask(client, model, input=["one", "other"]).data)
    assert one != other


def test_dimensions(client, model):
    got = ask(client, model, dimensions=8).data[0].embedding
    assert len(got) == 8 and math.isclose(length(got), 1, rel_tol=1e-3)
