"""GET /v1/models."""

import openai
import pytest


def test_list(client, model):
    models = list(client.models.list())
    assert [m.id for m in models] == [model]
    assert models[0].object == "model" and models[0].owned_by == "vllm" and models[0].created > 0
    assert models[0].max_model_len > 0


def test_retrieve(client, model):
    assert client.models.retrieve(model).id == model


def test_retrieve_unknown(client):
    with pytest.raises(openai.NotFoundError) as caught:
        client.models.retrieve("nobody/knows-it")
    assert caught.value.status_code == 404 and caught.value.type == "NotFoundError"
