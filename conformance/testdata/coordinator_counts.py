#!/usr/bin/env python3
"""Prints what the coordinator of a Python frontend tells its API servers: one line of JSON for every message.

  coordinator_counts.py FOLDER

FOLDER is the frontend's VLLM_RPC_BASE_PATH, where the coordinator's publishing socket lies among others that stay silent
to a subscriber. A line reads [[[waiting, running, …] for each engine] or null, wave, whether the engines run].
Needs pyzmq and msgspec, which the frontend's own environment has.
"""
import json
import pathlib
import sys

import msgspec
import zmq


def main(folder):
    subscriber = zmq.Context.instance().socket(zmq.SUB)
    subscriber.subscribe(b"")
    for path in pathlib.Path(folder).iterdir():
        subscriber.connect(f"ipc://{path}")
    while True:
        print(json.dumps(msgspec.msgpack.decode(subscriber.recv())), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
