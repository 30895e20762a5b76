"""Judges documents: reads lines of {"schema": ..., "documents": [text, ...]}, and writes a line for each with what is wrong, or "ok"."""
import json
import sys

from jsonschema import Draft202012Validator


def fault(schema, documents):
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    for text in documents:
        for error in validator.iter_errors(json.loads(text)):
            return f"{text}: {error.message}"
    return "ok"


for line in sys.stdin:
    case = json.loads(line)
    print(json.dumps(fault(case["schema"], case["documents"])), flush=True)
