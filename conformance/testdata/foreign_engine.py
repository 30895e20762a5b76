"""An engine that nobody would take for ours: a small one over libzmq and msgspec, for our front end to serve.

  foreign_engine.py --handshake tcp://127.0.0.1:29550 --rank 0

It answers with the tokens that a request traces, then with its prompt over and over, as fast as it can; it honours max_tokens, stop
tokens, min_tokens, logprobs, prompt logprobs and pooling, and knows the utility calls of a server. Arrays are written in full
and big tensors go in frames of their own, as vLLM 0.33's engine does it.
"""

import argparse
import hashlib
import itertools
import math
import struct
import time
from typing import Any

import msgspec
import zmq

ADD, ABORT, UTILITY = b"\x00", b"\x01", b"\x03"
STOP, LENGTH, ERROR = 0, 1, 3
QUEUED, SCHEDULED = 1, 2
ORDINARY = 100_256  # ids from here on are special
DIMENSIONS = 64
INLINE = 256  # bytes from which a tensor has a frame of its own
RAW = 3  # msgpack's extension type for the bytes of a tensor


class Request(msgspec.Struct, array_like=True):
    """The front of EngineCoreRequest, up to the last field that matters here."""

    request_id: str
    prompt: list[int] | None
    mm_features: Any
    sampling: dict[str, Any] | None
    pooling: list[Any] | None
    arrival_time: float
    lora: list[Any] | None = None
    cache_salt: str | None = None
    rank: int | None = None
    prompt_embeds: Any = None
    prompt_is_token_ids: Any = None
    client: int = 0


class Running:
    """A request on its way."""

    def __init__(self, request):
        self.id, self.client, self.prompt = request.request_id, request.client, request.prompt or []
        self.pooling = request.sampling is None
        self.sampling = request.sampling or {}
        self.most = self.sampling.get("max_tokens", 16)
        self.least = self.sampling.get("min_tokens", 0)
        self.stops = set(self.sampling.get("stop_token_ids") or [])
        self.end = self.sampling.get("_eos_token_id")
        ordinary = [t for t in self.prompt if t < ORDINARY] or [0]
        self.tokens = itertools.chain(self.sampling.get("trace_decode_token_ids") or [], itertools.cycle(ordinary))
        self.made = 0
        self.queued = time.monotonic()

    def step(self):
        """The next token, and the finish reason and what it stopped at."""
        token = next(self.tokens)
        self.made += 1
        if self.made >= self.least and token == self.end:
            return token, STOP, None
        if self.made >= self.least and token in self.stops:
            return token, STOP, token
        return token, LENGTH if self.made >= self.most else None, None


class Message:
    """One EngineCoreOutputs and the frames behind it."""

    def __init__(self):
        self.outputs, self.finished, self.frames = [], [], []

    def tensor(self, dtype, shape, values):
        data = struct.pack(f"<{len(values)}{'f' if 'f' in dtype else 'i'}", *values)
        if len(data) < INLINE:
            return [dtype, shape, msgspec.msgpack.Ext(RAW, data)]
        self.frames.append(data)
        return [dtype, shape, len(self.frames)]

    def add(self, r, tokens, finish=None, stop=None, logprobs=None, prompt=None, pooling=None, first=False, error=None):
        now = time.monotonic()
        events = [{"type": QUEUED, "timestamp": r.queued}, {"type": SCHEDULED, "timestamp": now}] if first else None
        prefill = prefill_stats(len(r.prompt)) if first else None
        self.outputs.append(
            [r.id, tokens, logprobs, prompt, pooling, finish, stop, events, None, None, None, prefill, None, 0, None, None, None, None, error]
        )
        if finish is not None:
            self.finished.append(r.id)


def prefill_stats(tokens):
    return {
        "num_prompt_tokens": tokens,
        "num_computed_tokens": tokens,
        "num_cached_tokens": 0,
        "num_local_cached_tokens": 0,
        "num_external_cached_tokens": 0,
        "num_cache_creation_tokens": tokens,
    }


def scores(message, tokens, alternatives, dtypes):
    """A row for each token: itself, then the likeliest ones, of which it is the first."""
    ids, logprobs = [], []
    for token in tokens:
        others = [(token + 1 + i) % ORDINARY for i in range(max(0, alternatives - 1))]
        ids += [token] + ([token] if alternatives else []) + others
        logprobs += [-0.5] + ([-0.5] if alternatives else []) + [-2.0 - i for i in range(len(others))]
    integer, real = dtypes
    shape = [len(tokens), alternatives + 1]
    return [
        message.tensor(integer, shape, ids),
        message.tensor(real, shape, logprobs),
        message.tensor(integer, [len(tokens)], [1] * len(tokens)),
        None,
    ]


def embedding(prompt):
    """A direction that depends on the tokens and nothing else."""
    digest = hashlib.shake_128(struct.pack(f"<{len(prompt)}I", *prompt)).digest(2 * DIMENSIONS)
    vector = [v / 32768 for v in struct.unpack(f"<{DIMENSIONS}h", digest)]
    length = math.sqrt(sum(v * v for v in vector))
    return [v / length for v in vector]


class Engine:
    """The sockets of one engine and what runs on it."""

    def __init__(self, handshake, rank):
        self.rank, self.running, self.paused, self.asleep, self.steps = rank, {}, False, False, 0
        self.encode = msgspec.msgpack.Encoder().encode
        self.decode_request = msgspec.msgpack.Decoder(Request).decode
        self.identity = rank.to_bytes(2, "little")
        self.context = zmq.Context()
        self.join(handshake)

    def join(self, handshake):
        greeter = self.dealer(handshake)
        greeter.send(self.encode({"status": "HELLO", "local": False, "headless": True}))
        addresses = msgspec.msgpack.decode(greeter.recv())["addresses"]
        self.inputs = [self.dealer(a) for a in addresses["inputs"]]
        self.outputs = [self.connected(zmq.PUSH, a) for a in addresses["outputs"]]
        for each in self.inputs:
            each.send(self.encode(self.registration()))
        greeter.send(self.encode({"status": "READY", "local": False, "headless": True}))
        self.greeter = greeter

    def dealer(self, address):
        return self.connected(zmq.DEALER, address, self.identity)

    def connected(self, kind, address, identity=None):
        made = self.context.socket(kind)
        if identity is not None:
            made.setsockopt(zmq.IDENTITY, identity)
        made.connect(address)
        return made

    def registration(self):
        return {
            "max_model_len": 8192,
            "num_gpu_blocks": 512,
            "block_size": 16,
            "dp_stats_address": None,
            "dtype": "bfloat16",
            "vllm_version": "0.33.0",
            "world_size": 1,
            "data_parallel_size": 1,
            "tensor_parallel_size": 1,
            "pipeline_parallel_size": 1,
            "decode_context_parallel_size": 1,
            "data_parallel_rank": self.rank,
            "max_num_seqs": 256,
            "max_num_batched_tokens": 8192,
            "instance_id": f"foreign-{self.rank}",
            "supports_lora": False,
            "max_loras": 0,
        }

    def serve(self):
        poller = zmq.Poller()
        for each in self.inputs:
            poller.register(each, zmq.POLLIN)
        while True:
            for ready, _ in poller.poll(0 if self.running else None):
                self.take(ready.recv_multipart())
            self.step()

    def take(self, frames):
        kind, body = frames[0], frames[1]
        if kind == ADD:
            self.start(self.decode_request(body))
        elif kind == ABORT:
            for request in msgspec.msgpack.decode(body):
                self.running.pop(request, None)
        elif kind == UTILITY:
            self.call(*msgspec.msgpack.decode(body))

    def start(self, request):
        r = Running(request)
        if self.paused:
            message = Message()
            message.add(r, [], ERROR, error={"code": "engine_paused", "message": "the engine is paused", "retryable": True})
            self.send(r.client, message)
            return
        self.running[r.id] = r

    def step(self):
        """One token for everybody, one message for each client."""
        messages = {}
        for r in list(self.running.values()):
            message = messages.setdefault(r.client, Message())
            if self.advance(r, message):
                del self.running[r.id]
        self.steps += 1
        for client, message in messages.items():
            self.send(client, message)

    def advance(self, r, message):
        if r.pooling:
            message.add(r, [], STOP, pooling=message.tensor("float32", [DIMENSIONS], embedding(r.prompt)), first=True)
            return True
        first = r.made == 0
        token, finish, stop = r.step()
        prompt = logprobs = None
        if first and r.sampling.get("prompt_logprobs") is not None:
            prompt = scores(message, r.prompt[1:], r.sampling["prompt_logprobs"], ("int32", "float32")) + [None]
        if r.sampling.get("logprobs") is not None:
            logprobs = scores(message, [token], r.sampling["logprobs"], ("<i4", "<f4"))
        message.add(r, [token], finish, stop, logprobs, prompt, first=first)
        return finish is not None

    def send(self, client, message):
        body = [self.rank, message.outputs, self.stats(), time.monotonic(), None, message.finished or None, None, None, "default"]
        self.outputs[client].send_multipart([self.encode(body), *message.frames])

    def stats(self):
        cache = dict.fromkeys(("requests", "queries", "hits", "preempted_requests", "preempted_queries", "preempted_hits"), 0)
        return {
            "num_running_reqs": len(self.running),
            "num_waiting_reqs": 0,
            "num_skipped_waiting_reqs": 0,
            "step_counter": self.steps,
            "current_wave": 0,
            "kv_cache_usage": 0.5 if self.running else 0.0,
            "prefix_cache_stats": {"reset": False, **cache},
            "connector_prefix_cache_stats": None,
            "kv_cache_eviction_events": [],
            "spec_decoding_stats": None,
            "kv_connector_stats": None,
            "waiting_lora_adapters": {},
            "running_lora_adapters": {},
            "iteration_details": None,
            "cudagraph_stats": None,
            "perf_stats": None,
        }

    def call(self, client, number, method, args):
        known = {
            "get_supported_tasks": lambda: ["generate", "embed"],
            "pause_generation": lambda: self.set_paused(True),
            "resume_scheduler": lambda: self.set_paused(False),
            "is_scheduler_paused": lambda: self.paused,
            "sleep": lambda: self.set_asleep(True),
            "wake_up": lambda: not self.set_asleep(False),
            "is_sleeping": lambda: self.asleep,
            "reset_prefix_cache": lambda: True,
            "reset_mm_cache": lambda: None,
            "reset_encoder_cache": lambda: None,
        }
        if method in known:
            answer = [number, None, [None, known[method]()]]
        else:
            answer = [number, f"Call to {method} method failed: there is none", None]
        body = [self.rank, [], None, time.monotonic(), answer, None, None, None, None]
        self.outputs[client].send(self.encode(body))

    def set_paused(self, paused):
        self.paused = paused
        if paused:
            self.running.clear()

    def set_asleep(self, asleep):
        self.asleep = asleep


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--handshake", required=True)
    parser.add_argument("--rank", type=int, default=0)
    options = parser.parse_args()
    Engine(options.handshake, options.rank).serve()


main()
