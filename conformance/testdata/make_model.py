#!/usr/bin/env python3
"""Writes the model folders beside it: everything a frontend reads of a model, and no weights.

  make_model.py          rewrites model-dense/ and model-moe/

The tokenizer is byte-level BPE, learnt here from TEXT. Its ids are ordered for tests:

  0 … 299    printable ASCII and what was merged out of it: any sequence of them is whole, visible text, so that engines
             started with --vocab-size 300 give exactly one piece of text a token
  300 … 460  the bytes left over, so that every prompt can be encoded
  461 …      the special tokens, which no engine draws by chance
"""
import collections
import json
import pathlib
import re

ASCII_IDS = 300
SPECIAL = ["<|end|>", "<|turn|>"]
TEXT = """
A frontend takes a request over HTTP, turns its words into tokens and hands them to an engine. The engine waits until it has
a free slot, reads the prompt, and then gives one token after another until the request has had as many as it asked for. The
frontend turns each token back into words and sends them on as they come. Hello world, says the first request, and the second
one says the same; how long the first token takes and how long each later token takes is what people measure when they ask
whether their gateway, their router or their autoscaler is any good. Count to ten: one two three four five six seven eight
nine ten. Tell me a story about an engine that was slow and a client that went away.
"""
TEMPLATE = (
    "{% for m in messages %}<|turn|>{{ m['role'] }}\n{{ m['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


def byte_letters():
    """The letter that stands for each byte in a byte-level vocabulary: itself if it is visible, else one above U+00FF."""
    visible = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in visible]
    return {b: chr(b) for b in visible} | {b: chr(0x100 + i) for i, b in enumerate(hidden)}


def learn_merges(words, count):
    """The count most useful pairs, in order: each merges the commonest neighbours of the words as merged so far."""
    merges = []
    while len(merges) < count:
        pairs = collections.Counter()
        for word, times in words.items():
            for pair in zip(word, word[1:]):
                pairs[pair] += times
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        words = {merge(word, best): times for word, times in words.items()}
    return merges


def merge(word, pair):
    out, i = [], 0
    while i < len(word):
        joined = word[i : i + 2] == pair
        out.append("".join(pair) if joined else word[i])
        i += 2 if joined else 1
    return tuple(out)


def tokenizer():
    letters = byte_letters()
    printable = [letters[b] for b in range(0x20, 0x7F)]
    rest = [letters[b] for b in range(256) if letters[b] not in printable]
    pieces = re.findall(r" ?[A-Za-z]+|[^A-Za-z\s]", TEXT.replace("\n", " "))
    words = collections.Counter(tuple(letters[b] for b in piece.encode()) for piece in pieces)
    merges = learn_merges(words, ASCII_IDS - len(printable))
    vocabulary = printable + [a + b for a, b in merges] + rest
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {
                "id": len(vocabulary) + i,
                "content": content,
                "single_word": False,
                "lstrip": False,
                "rstrip": False,
                "normalized": False,
                "special": True,
            }
            for i, content in enumerate(SPECIAL)
        ],
        "normalizer": None,
        "pre_tokenizer": byte_level,
        "post_processor": byte_level,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "vocab": {token: i for i, token in enumerate(vocabulary)},
            "merges": [f"{a} {b}" for a, b in merges],
        },
    }


def config(vocab_size, **special):
    return {
        "vocab_size": vocab_size,
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 4096,
        "eos_token_id": vocab_size - 2,
        "bos_token_id": None,
        "rms_norm_eps": 1e-06,
        "hidden_act": "silu",
        "tie_word_embeddings": True,
        "torch_dtype": "bfloat16",
    } | special


def write_model(folder, special):
    folder.mkdir(exist_ok=True)
    words = tokenizer()
    vocab_size = len(words["model"]["vocab"]) + len(SPECIAL)
    files = {
        "config.json": config(vocab_size, **special),
        "generation_config.json": {"eos_token_id": vocab_size - 2, "do_sample": True, "temperature": 0.8},
        "tokenizer.json": words,
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "eos_token": SPECIAL[0],
            "pad_token": SPECIAL[0],
            "model_max_length": 4096,
            "clean_up_tokenization_spaces": False,
            "chat_template": TEMPLATE,
        },
    }
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n")


DENSE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama"}
MOE = {
    "architectures": ["Qwen2MoeForCausalLM"],
    "model_type": "qwen2_moe",
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 64,
    "num_experts": 4,
    "num_experts_per_tok": 2,
}

if __name__ == "__main__":
    here = pathlib.Path(__file__).parent
    write_model(here / "model-dense", DENSE)
    write_model(here / "model-moe", MOE)
