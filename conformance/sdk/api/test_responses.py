"""POST /v1/responses."""

import json

import jsonschema
import pydantic
from test_tools import WEATHER

TOOL = {"type": "function", "name": "weather", "description": "the weather", "parameters": WEATHER, "strict": True}


def ask(client, model, **more):
    return client.responses.create(**{"model": model, "input": "Tell me a story", "max_output_tokens": 20} | more)


def check_usage(usage, output):
    assert usage.input_tokens > 0 and usage.output_tokens == output
    assert usage.total_tokens == usage.input_tokens + output


def test_plain(client, model, server):
    got = ask(client, model)
    assert got.id.startswith("resp_") and got.object == "response" and got.model == model
    assert got.status == "incomplete" and got.incomplete_details.reason == "max_output_tokens"
    assert got.output[0].type == "message" and got.output_text
    check_usage(got.usage, 20)
    assert got.usage.input_tokens == len(server.chat_tokens([{"role": "user", "content": "Tell me a story"}]))


def test_messages(client, model, server):
    got = ask(client, model, instructions="Be brief", input=[{"role": "user", "content": [{"type": "input_text", "text": "Hello"}]}])
    spoken = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Hello"}]
    assert got.usage.input_tokens == len(server.chat_tokens(spoken))


def test_stream(client, model):
    events = list(ask(client, model, stream=True))
    assert [e.sequence_number for e in events] == list(range(len(events)))
    kinds = [e.type for e in events]
    assert kinds[:4] == ["response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"]
    assert kinds[-4:-1] == ["response.output_text.done", "response.content_part.done", "response.output_item.done"]
    assert set(kinds[4:-4]) == {"response.output_text.delta"}
    text = "".join(e.delta for e in events if e.type == "response.output_text.delta")
    final = events[-1].response
    assert text == final.output_text and events[0].response.id == final.id
    check_usage(final.usage, 20)


def test_stream_helper(client, model):
    with client.responses.stream(model=model, input="Hello", max_output_tokens=9) as stream:
        text = "".join(e.delta for e in stream if e.type == "response.output_text.delta")
        assert stream.get_final_response().output_text == text


def test_call(client, model):
    got = ask(client, model, tools=[TOOL], tool_choice="required", max_output_tokens=500)
    (call,) = [o for o in got.output if o.type == "function_call"]
    assert call.name == "weather" and call.call_id and got.status == "completed"
    jsonschema.validate(json.loads(call.arguments), WEATHER)


def test_call_stream(client, model):
    events = list(ask(client, model, tools=[TOOL], tool_choice="required", max_output_tokens=500, stream=True))
    arguments = "".join(e.delta for e in events if e.type == "response.function_call_arguments.delta")
    jsonschema.validate(json.loads(arguments), WEATHER)
    (done,) = [e for e in events if e.type == "response.function_call_arguments.done"]
    assert done.arguments == arguments == events[-1].response.output[0].arguments


class Item(pydantic.BaseModel):
    """A class from which the SDK makes a schema."""

    title: str
    count: int


def test_parsed(client, model):
    got = client.responses.parse(model=model, input="Hello", text_format=Item, max_output_tokens=500)
    assert isinstance(got.output_parsed, Item)


def test_schema(client, model):
    schema = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"], "additionalProperties": False}
    got = ask(client, model, text={"format": {"type": "json_schema", "name": "answer", "schema": schema, "strict": True}})
    jsonschema.validate(json.loads(got.output_text), schema)
    assert got.status == "completed"
