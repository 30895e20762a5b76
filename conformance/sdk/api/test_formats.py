"""response_format: JSON that its schema allows."""

import enum
import json

import jsonschema
import pydantic
import pytest
from asking import CONVERSATION

SCHEMAS = {
    "flat": {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer", "minimum": 0, "maximum": 120}},
        "required": ["name", "age"],
        "additionalProperties": False,
    },
    "tree": {
        "$defs": {"node": {"type": "object", "properties": {"value": {"type": "number"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}}, "required": ["value", "children"]}},
        "$ref": "#/$defs/node",
    },
    "choices": {"type": "array", "items": {"enum": ["a", 1, None, True]}, "minItems": 3, "maxItems": 3},
    "pattern": {"type": "object", "properties": {"id": {"type": "string", "pattern": "^[A-Z]{3}-[0-9]{4}$"}}, "required": ["id"]},
    "constant": {"type": "object", "properties": {"kind": {"const": "fixed"}, "price": {"type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5}}, "required": ["kind", "price"]},
}


def ask(client, model, response_format, **more):
    return client.chat.completions.create(model=model, messages=CONVERSATION, response_format=response_format, **more)


def of_schema(name):
    return {"type": "json_schema", "json_schema": {"name": name, "schema": SCHEMAS[name], "strict": True}}


def test_object(client, model):
    got = ask(client, model, {"type": "json_object"}).choices[0]
    assert isinstance(json.loads(got.message.content), dict) and got.finish_reason == "stop"


@pytest.mark.parametrize("name", SCHEMAS)
def test_schema(client, model, name):
    for choice in ask(client, model, of_schema(name), n=3).choices:
        assert choice.finish_reason == "stop"
        jsonschema.validate(json.loads(choice.message.content), SCHEMAS[name])


def test_stream(client, model, server):
    *events, last = ask(client, model, of_schema("flat"), stream=True, stream_options={"include_usage": True})
    text = "".join(e.choices[0].delta.content or "" for e in events)
    jsonschema.validate(json.loads(text), SCHEMAS["flat"])
    assert last.usage.completion_tokens >= len(server.tokens(text))


def test_cut(client, model):
    """A limit ends even JSON, and says so."""
    got = ask(client, model, of_schema("flat"), max_completion_tokens=2)
    assert got.choices[0].finish_reason == "length" and got.usage.completion_tokens == 2


class Colour(str, enum.Enum):
    red = "red"
    green = "green"


class Item(pydantic.BaseModel):
    """A class from which the SDK makes a schema."""

    title: str
    colour: Colour
    sizes: list[int]
    note: str | None


def test_parsed(client, model):
    got = client.chat.completions.parse(model=model, messages=CONVERSATION, response_format=Item)
    assert isinstance(got.choices[0].message.parsed, Item)


def test_completion(client, model):
    """vLLM's own ways to bind an answer."""
    forms = {
        "choice": (["yes", "no"], lambda text: text in ("yes", "no")),
        "regex": ("[a-f]{4}[0-9]", lambda text: len(text) == 5 and text[4].isdigit()),
        "json": (SCHEMAS["flat"], lambda text: jsonschema.validate(json.loads(text), SCHEMAS["flat"]) is None),
    }
    for form, (value, holds) in forms.items():
        got = client.completions.create(model=model, prompt="x", max_tokens=400, extra_body={"structured_outputs": {form: value}})
        assert holds(got.choices[0].text) and got.choices[0].finish_reason == "stop", form
