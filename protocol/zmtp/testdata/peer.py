"""libzmq peers for the interop tests: python peer.py SCENARIO [ARGUMENT...]

A peer prints one line "at ADDRESS" once it is bound, and last one line that
tells what it saw. It ends with its standard input, or as its scenario says.
"""

import os
import sys
import threading
import time

import zmq
from zmq.utils.monitor import recv_monitor_message

context = zmq.Context()


def say(*words):
    print(*words, flush=True)


def bind(socket_type, address, **options):
    socket = context.socket(socket_type)
    socket.linger = 5000
    for name, value in options.items():
        setattr(socket, name, value)
    socket.bind(address)
    say("at", socket.last_endpoint.decode())
    return socket


def connect(socket_type, address, **options):
    socket = context.socket(socket_type)
    socket.linger = 5000
    for name, value in options.items():
        setattr(socket, name, value)
    socket.connect(address)
    return socket


def echo(address):
    """ROUTER: sends every message back, the identity in hex as first frame."""
    router = bind(zmq.ROUTER, address)
    while True:
        identity, *frames = router.recv_multipart(copy=False)
        router.send_multipart([identity, identity.bytes.hex().encode(), *frames])


def count(address, messages):
    """PULL: checks that messages arrive numbered from 0, all of them."""
    pull = bind(zmq.PULL, address)
    for i in range(int(messages)):
        got = int.from_bytes(pull.recv()[:4], "big")
        if got != i:
            say("message", i, "has number", got)
            return
    say("counted", messages)


def slow(address, messages):
    """PULL with room for one message: reads only once told to."""
    pull = bind(zmq.PULL, address, rcvhwm=1, rcvbuf=4096)
    sys.stdin.readline()
    count_of_bytes = sum(len(pull.recv(copy=False)) for _ in range(int(messages)))
    say("read", count_of_bytes)


def publish(address):
    """XPUB: answers each subscription with READY and what was subscribed to."""
    xpub = bind(zmq.XPUB, address, xpub_verbose=1)
    while True:
        message = xpub.recv()
        if message[:1] == b"\x01":
            xpub.send_multipart([b"READY", message[1:]])
            xpub.send_multipart([message[1:] + b"-topic", message])


def heartbeat(kind, address, seconds):
    """Pings every 50 ms and drops a peer that is silent for 150 ms."""
    beat = {"heartbeat_ivl": 50, "heartbeat_timeout": 150, "heartbeat_ttl": 500}
    binding = kind in ("ROUTER", "PULL", "XPUB")
    socket = context.socket(getattr(zmq, kind))
    events = socket.get_monitor_socket()
    for name, value in beat.items():
        setattr(socket, name, value)
    if binding:
        socket.bind(address)
        say("at", socket.last_endpoint.decode())
    else:
        socket.connect(address)
    wanted, ends, until = 0, 0, None
    while until is None or time.monotonic() < until:
        if events.poll(20):
            event = recv_monitor_message(events)["event"]
            if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
                wanted += 1
                until = until or time.monotonic() + float(seconds)
            if event == zmq.EVENT_DISCONNECTED:
                ends += 1
    say("connections", wanted, "lost", ends)


def dealers(address, number):
    """DEALERs with identities 0000, 0100, …: each says hello, tells the answer."""
    sockets = []
    for i in range(int(number)):
        identity = i.to_bytes(2, "little")
        sockets.append(connect(zmq.DEALER, address, routing_id=identity))
        sockets[i].send_multipart([b"hello", b"", identity])
    say("answers", *(s.recv_multipart()[0].decode() for s in sockets))


def handover(address):
    """DEALER that is replaced by another one of the same identity."""
    old = connect(zmq.DEALER, address, routing_id=b"\x00\x00")
    old.send(b"old")
    old.recv()
    new = connect(zmq.DEALER, address, routing_id=b"\x00\x00")
    new.send(b"new")
    say("answer", new.recv().decode())


def push(address, messages, size):
    """PUSH: numbered messages."""
    socket = connect(zmq.PUSH, address, sndhwm=0)
    rest = bytes(int(size) - 4)
    for i in range(int(messages)):
        socket.send(i.to_bytes(4, "big") + rest)
    socket.close()
    context.term()
    say("sent", messages)


def subscribe(address, *topics):
    """SUB: tells the first message of each topic, in the order of the topics."""
    socket = connect(zmq.SUB, address)
    got = {}
    for topic in topics:
        socket.subscribe(topic.encode())
    while len(got) < len(topics):
        topic, body = socket.recv_multipart()
        got[topic.decode()] = body.decode()
    say("got", *(got[t] for t in topics))


def end_with_input():
    while sys.stdin.buffer.read(1):
        pass
    os._exit(0)


if __name__ == "__main__":
    scenario, arguments = sys.argv[1], sys.argv[2:]
    if scenario != "slow":
        threading.Thread(target=end_with_input, daemon=True).start()
    globals()[scenario](*arguments)
    sys.stdout.flush()
    os._exit(0)
