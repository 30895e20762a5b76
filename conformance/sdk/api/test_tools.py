"""Tool calls: their arguments are what their schema allows."""

import json

import jsonschema
import openai
import pydantic
import pytest
from asking import CONVERSATION

WEATHER = {
    "type": "object",
    "title": "Weather",
    "properties": {
        "city": {"type": "string", "minLength": 3, "description": "Where"},
        "unit": {"enum": ["celsius", "fahrenheit"], "default": "celsius"},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
ROUTE = {
    "type": "object",
    "$defs": {"place": {"type": "object", "properties": {"lat": {"type": "number"}, "lon": {"type": "number"}}, "required": ["lat", "lon"]}},
    "properties": {
        "from": {"$ref": "#/$defs/place"},
        "to": {"anyOf": [{"$ref": "#/$defs/place"}, {"type": "string", "maxLength": 20}]},
        "via": {"type": "array", "items": {"$ref": "#/$defs/place"}, "minItems": 2, "maxItems": 3},
        "when": {"type": ["string", "null"], "format": "date-time"},
    },
    "required": ["from", "to", "via", "when"],
}
SCHEMAS = {"weather": WEATHER, "route": ROUTE, "now": {"type": "object", "properties": {}}}
TOOLS = [{"type": "function", "function": {"name": name, "description": name, "parameters": schema}} for name, schema in SCHEMAS.items()]
NAMED = {"type": "function", "function": {"name": "route"}}


def ask(client, model, **more):
    return client.chat.completions.create(**{"model": model, "messages": CONVERSATION, "tools": TOOLS} | more)


def check_call(name, arguments):
    jsonschema.validate(json.loads(arguments), SCHEMAS[name], format_checker=jsonschema.FormatChecker())


@pytest.mark.parametrize("choice", ["auto", "required", NAMED], ids=["auto", "required", "named"])
def test_call(client, model, choice):
    got = ask(client, model, tool_choice=choice)
    message = got.choices[0].message
    assert message.tool_calls and not message.content
    # vLLM ends a call that was named, and so was no decision, as an answer that stops.
    assert got.choices[0].finish_reason == ("stop" if choice == NAMED else "tool_calls")
    for call in message.tool_calls:
        assert call.id and call.type == "function"
        check_call(call.function.name, call.function.arguments)
    if choice == NAMED:
        assert [c.function.name for c in message.tool_calls] == ["route"]
    assert got.usage.completion_tokens > 0


def test_every_choice_calls(client, model):
    for choice in ask(client, model, tool_choice="required", n=4).choices:
        for call in choice.message.tool_calls:
            check_call(call.function.name, call.function.arguments)


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, None], ids=["empty", "bare object", "none"])
def test_call_without_parameters(client, model, schema):
    function = {"name": "f"} | ({} if schema is None else {"parameters": schema})
    got = ask(client, model, tools=[{"type": "function", "function": function}], tool_choice="required")
    assert isinstance(json.loads(got.choices[0].message.tool_calls[0].function.arguments), dict)


def test_none(client, model):
    got = ask(client, model, tool_choice="none", max_completion_tokens=7).choices[0]
    assert got.message.content and not got.message.tool_calls and got.finish_reason == "length"


def test_stream(client, model):
    """The pieces of each call have its index, the first one its name and id."""
    calls, reasons = {}, []
    for event in ask(client, model, tool_choice="required", stream=True):
        delta = event.choices[0].delta
        reasons.append(event.choices[0].finish_reason)
        for piece in delta.tool_calls or []:
            call = calls.setdefault(piece.index, {"id": piece.id, "name": piece.function.name, "arguments": ""})
            assert call["id"] and call["name"]
            call["arguments"] += piece.function.arguments or ""
    assert calls and reasons[-1] == "tool_calls"
    for call in calls.values():
        check_call(call["name"], call["arguments"])


def test_conversation_goes_on(client, model):
    """What a call returned is put into the next question."""
    message = ask(client, model, tool_choice="required").choices[0].message
    result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "21 degrees"}
    messages = CONVERSATION + [message.model_dump(exclude_none=True), result]
    got = ask(client, model, messages=messages, tool_choice="none", max_completion_tokens=9)
    assert got.choices[0].message.content and got.usage.completion_tokens == 9


class Booking(pydantic.BaseModel):
    """A class from which the SDK makes a tool."""

    guest: str
    nights: int
    smoker: bool


def test_parsed(client, model):
    tool = openai.pydantic_function_tool(Booking)
    got = client.chat.completions.parse(model=model, messages=CONVERSATION, tools=[tool], tool_choice="required")
    assert isinstance(got.choices[0].message.tool_calls[0].function.parsed_arguments, Booking)
