"""What a server refuses, and the SDK's exception for it."""

import openai
import pytest
from asking import CONVERSATION, PROMPT

BAD_COMPLETIONS = {
    "negative temperature": {"temperature": -1},
    "top_p over 1": {"top_p": 2},
    "no choice": {"n": 0},
    "negative length": {"max_tokens": -5},
    "no length and no echo": {"max_tokens": 0},
    "too many logprobs": {"logprobs": 1000},
    "ids beyond the vocabulary": {"prompt": [1 << 30]},
    "negative id": {"prompt": [-1]},
    "prompt of mixed kinds": {"prompt": ["a", 1]},
    "no prompt": {"prompt": None},
    "number for a text": {"prompt": 5},
    "text for a number": {"max_tokens": "many"},
    "stream options without a stream": {"stream_options": {"include_usage": True}},
    "more than the context": {"max_tokens": 1 << 40},
}
BAD_CHATS = {
    "no messages": {"messages": []},
    "message that is none": {"messages": ["Hello"]},
    "message without a role": {"messages": [{"content": "Hello"}]},
    "negative temperature": {"temperature": -1},
    "no choice": {"n": 0},
    "negative length": {"max_tokens": -5},
    "no length": {"max_completion_tokens": 0},
    "top_logprobs without logprobs": {"top_logprobs": 3},
    "too many top_logprobs": {"logprobs": True, "top_logprobs": 1000},
    "tool choice without tools": {"tool_choice": "required"},
    "unknown format": {"response_format": {"type": "xml"}},
    "format without its schema": {"response_format": {"type": "json_schema"}},
}
UNKNOWN = "nobody/knows-it"
EACH_STREAM = pytest.mark.parametrize("stream", [False, True], ids=["body", "stream"])


def refused(kind, status, call):
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert error.status_code == error.body["code"] == status and error.body["message"]
    assert error.response.headers["content-type"].startswith("application/json")
    return error


@EACH_STREAM
@pytest.mark.parametrize("case", BAD_COMPLETIONS)
def test_completion(client, model, case, stream):
    body = {"model": model, "prompt": PROMPT, "stream": stream} | BAD_COMPLETIONS[case]
    if case == "stream options without a stream":
        body["stream"] = False
    refused(openai.BadRequestError, 400, lambda: client.post("/completions", body=body, cast_to=object))


@EACH_STREAM
@pytest.mark.parametrize("case", BAD_CHATS)
def test_chat(client, model, case, stream):
    body = {"model": model, "messages": CONVERSATION, "stream": stream} | BAD_CHATS[case]
    refused(openai.BadRequestError, 400, lambda: client.post("/chat/completions", body=body, cast_to=object))


def test_unknown_model(client):
    for call in (
        lambda: client.completions.create(model=UNKNOWN, prompt=PROMPT),
        lambda: client.chat.completions.create(model=UNKNOWN, messages=CONVERSATION, stream=True),
        lambda: client.embeddings.create(model=UNKNOWN, input=PROMPT),
        lambda: client.responses.create(model=UNKNOWN, input="Hello"),
    ):
        error = refused(openai.NotFoundError, 404, call)
        assert UNKNOWN in error.message and error.type == "NotFoundError"


def test_unknown_path(client):
    refused(openai.NotFoundError, 404, lambda: client.post("/chat/nothing", body={}, cast_to=object))


def test_wrong_method(client):
    error = refused(openai.APIStatusError, 405, lambda: client.get("/chat/completions", cast_to=object))
    assert "POST" in error.response.headers["allow"]


def test_unknown_fields_are_ignored(client, model):
    got = client.completions.create(model=model, prompt=PROMPT, max_tokens=3, extra_body={"nobody_knows": {"this": [1]}})
    assert got.usage.completion_tokens == 3


def test_prompt_over_the_context(client, model):
    limit = client.models.retrieve(model).max_model_len
    ids = [1] * (limit + 4)
    error = refused(openai.BadRequestError, 400, lambda: client.completions.create(model=model, prompt=ids, stream=True))
    assert str(limit) in error.message


def test_paused(client, model, server):
    """Engines that are paused take no requests, and the SDK is told that another try may help."""
    server.post("/pause")
    try:
        for stream in (False, True):
            call = lambda: client.chat.completions.create(model=model, messages=CONVERSATION, stream=stream)
            refused(openai.InternalServerError, 503, call)
    finally:
        server.post("/resume")
    assert client.chat.completions.create(model=model, messages=CONVERSATION, max_completion_tokens=3).usage.completion_tokens == 3
