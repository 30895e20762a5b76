"""The suite asks a server whose address is in VCR_URL through the OpenAI SDK.

It takes nothing for granted that only our engines do: what a text says is the engine's affair, so lengths, counts, shapes and reasons are
what it judges.
"""

import json
import os
import urllib.request

ROOT = os.environ["VCR_URL"]
MODEL = os.environ["VCR_MODEL"]

PROMPT = "A frontend takes a request over HTTP"
CONVERSATION = [{"role": "system", "content": "You answer at length."}, {"role": "user", "content": "Tell me a story"}]


class Server:
    """The calls that the SDK doesn't know."""

    def post(self, path, body=None):
        data = json.dumps(body).encode() if body is not None else b""
        request = urllib.request.Request(ROOT + path, data, {"Content-Type": "application/json"}, method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.loads(answer.read() or b"null")

    def tokens(self, text):
        """The ids of a text as it is, without the tokens that a model may want around it."""
        return self.post("/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]

    def chat_tokens(self, messages, **more):
        return self.post("/tokenize", {"messages": messages, **more})["tokens"]

    def text(self, tokens):
        return self.post("/detokenize", {"tokens": tokens})["prompt"]


def options(**more):
    """No second try: what the first one says is under test."""
    return {"base_url": ROOT + "/v1", "api_key": "none", "max_retries": 0, "timeout": 30} | more


def check_usage(usage, prompt, completion):
    got = (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens)
    assert got == (prompt, completion, prompt + completion)
