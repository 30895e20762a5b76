"""Runs a command's `serve` in a network namespace that was just made, asks it for a chat over loopback, and ends it.

  alone.py COMMAND…

Nothing outside can be reached from here; the exit status says whether all went well.
"""

import fcntl
import json
import socket
import struct
import subprocess
import sys
import time
import urllib.error
import urllib.request

URL = "http://127.0.0.1:8000"
SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1


def raise_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        ask = struct.pack("16sH14x", b"lo", 0)
        (flags,) = struct.unpack_from("H", fcntl.ioctl(any_socket, SIOCGIFFLAGS, ask), 16)
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags | IFF_UP))


def check_alone():
    """There must be nowhere to go."""
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1).close()
    except OSError:
        return
    sys.exit("there is a network here")


def await_health(server):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline and server.poll() is None:
        try:
            with urllib.request.urlopen(URL + "/health", timeout=1):
                return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.02)
    sys.exit("not ready")


def chat():
    body = json.dumps({"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 5}).encode()
    request = urllib.request.Request(URL + "/v1/chat/completions", body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def main():
    raise_loopback()
    check_alone()
    server = subprocess.Popen([*sys.argv[1:], "serve", "--model", "Qwen/Qwen3-32B", "--engine-count", "2"])
    try:
        await_health(server)
        answer = chat()
        assert answer["usage"]["completion_tokens"] == 5 and answer["choices"][0]["message"]["content"], answer
    finally:
        server.terminate()
    sys.exit(server.wait(10))


main()
