"""A server with --api-key wants the key that is in VCR_KEY, and tells nobody else anything but its health."""

import os

import openai
import pytest
from asking import MODEL, ROOT, options

KEY = os.environ["VCR_KEY"]


@pytest.mark.parametrize("key", ["wrong", KEY + "x", KEY[:-1], "none"])
def test_wrong(key):
    with openai.OpenAI(**options(api_key=key)) as client:
        for call in (
            lambda: client.models.list(),
            lambda: client.completions.create(model=MODEL, prompt="Hello"),
            lambda: client.completions.create(model=MODEL, prompt="Hello", stream=True),
        ):
            with pytest.raises(openai.AuthenticationError) as caught:
                call()
            assert caught.value.status_code == 401
            assert caught.value.response.headers["content-type"].startswith("application/json")


def test_right():
    with openai.OpenAI(**options(api_key=KEY)) as client:
        assert client.completions.create(model=MODEL, prompt="Hello", max_tokens=3).usage.completion_tokens == 3


def test_health_is_open():
    with openai.OpenAI(**options(base_url=ROOT, api_key="wrong")) as client:
        assert client.get("/health", cast_to=str) is not None
