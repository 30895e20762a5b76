"""POST /v1/chat/completions: plain answers."""

import asyncio
import math

import openai
import pytest
from asking import CONVERSATION, check_usage, options


def ask(client, model, **more):
    return client.chat.completions.create(**{"model": model, "messages": CONVERSATION, "max_completion_tokens": 12} | more)


def test_plain(client, model, server):
    got = ask(client, model)
    assert got.id.startswith("chatcmpl-") and got.object == "chat.completion" and got.model == model
    (choice,) = got.choices
    assert (choice.index, choice.finish_reason, choice.message.role) == (0, "length", "assistant")
    assert choice.message.content and not choice.message.tool_calls
    check_usage(got.usage, len(server.chat_tokens(CONVERSATION)), 12)


def test_both_limits(client, model):
    """max_completion_tokens wins over the older name."""
    assert ask(client, model, max_tokens=5, max_completion_tokens=7).usage.completion_tokens == 7


def test_parts(client, model):
    messages = [{"role": "user", "content": [{"type": "text", "text": "Tell me"}, {"type": "text", "text": "a story"}]}]
    assert ask(client, model, messages=messages).usage.completion_tokens == 12


def test_longer_conversation_costs_more(client, model, server):
    longer = CONVERSATION + [{"role": "assistant", "content": "Once"}, {"role": "user", "content": "Go on"}]
    got = ask(client, model, messages=longer).usage.prompt_tokens
    assert got == len(server.chat_tokens(longer)) > len(server.chat_tokens(CONVERSATION))


def test_several_choices(client, model, server):
    got = ask(client, model, n=3, max_completion_tokens=5)
    assert [c.index for c in got.choices] == [0, 1, 2]
    check_usage(got.usage, len(server.chat_tokens(CONVERSATION)), 15)


def test_stop(client, model):
    stops = ["a", "e", "i", "o"]
    got = ask(client, model, max_completion_tokens=200, stop=stops).choices[0]
    assert got.finish_reason == "stop" and not any(s in got.message.content for s in stops)


@pytest.mark.parametrize("top", [0, 4])
def test_logprobs(client, model, top):
    got = ask(client, model, logprobs=True, top_logprobs=top).choices[0]
    check_logprobs(got.logprobs.content, got.message.content, top)


def check_logprobs(entries, text, top):
    assert b"".join(bytes(e.bytes) for e in entries).decode() == text
    for e in entries:
        assert e.logprob < 0 and len(e.top_logprobs) >= min(top, 1)
        assert sum(math.exp(p.logprob) for p in e.top_logprobs) < 1


def test_no_logprobs(client, model):
    assert ask(client, model).choices[0].logprobs is None


def test_stream(client, model):
    events = list(ask(client, model, stream=True, max_completion_tokens=30))
    assert len({e.id for e in events}) == 1 and {e.object for e in events} == {"chat.completion.chunk"}
    assert events[0].choices[0].delta.role == "assistant" and events[0].choices[0].delta.content == ""
    assert all(e.choices[0].delta.role is None for e in events[1:])
    assert "".join(e.choices[0].delta.content or "" for e in events)
    assert [e.choices[0].finish_reason for e in events if e.choices[0].finish_reason] == ["length"]
    assert all(e.usage is None for e in events)


def test_stream_usage(client, model, server):
    *events, last = ask(client, model, stream=True, n=3, stream_options={"include_usage": True})
    assert last.choices == [] and all(e.usage is None for e in events)
    check_usage(last.usage, len(server.chat_tokens(CONVERSATION)), 36)
    finished = sorted(c.index for e in events for c in e.choices if c.finish_reason)
    assert finished == [0, 1, 2]


def test_stream_logprobs(client, model):
    choices = [e.choices[0] for e in ask(client, model, stream=True, logprobs=True, top_logprobs=2)]
    entries = [entry for c in choices if c.logprobs for entry in c.logprobs.content]
    assert len(entries) == 12
    check_logprobs(entries, "".join(c.delta.content or "" for c in choices), 2)


def test_stream_left_early(client, model):
    """A client that goes in the middle leaves a server that answers the next one."""
    with ask(client, model, stream=True, max_completion_tokens=8000) as stream:
        next(iter(stream))
    assert ask(client, model).usage.completion_tokens == 12


def test_stream_helper(client, model):
    """The SDK's own reader of events puts the answer together again. It takes none that a limit has cut."""
    with client.chat.completions.stream(model=model, messages=CONVERSATION, stop=["e", "a"]) as stream:
        text = "".join(e.delta for e in stream if e.type == "content.delta")
        assert stream.get_final_completion().choices[0].message.content == text


def test_crowd(model):
    async def one(client, n):
        got = await client.chat.completions.create(model=model, messages=CONVERSATION, max_completion_tokens=n)
        return got.usage.completion_tokens

    async def all_of_them():
        async with openai.AsyncOpenAI(**options()) as client:
            return await asyncio.gather(*(one(client, n) for n in range(1, 65)))

    assert asyncio.run(all_of_them()) == list(range(1, 65))
