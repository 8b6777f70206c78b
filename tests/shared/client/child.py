"""A stdio server with a fault: `python child.py FAULT` has it from the start, `python child.py` in each call whose
argument `fault` names it.

It runs without site packages, and imports nothing of the project.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]
OUT = sys.stdout.buffer
RESULTS: dict[str, Json] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}, "resources": {"subscribe": True}},
        "serverInfo": {"name": "child", "version": "1"},
    },
    "server/discover": {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}},
    "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
    "tools/call": {"content": [{"type": "text", "text": "done"}]},
    "resources/read": {"contents": []},
}
NOTE = b'{"jsonrpc": "2.0", "method": "notifications/told", "params": {"text": "%b"}}\n' % (b"x" * 100)
MORE = 2**20


def write(data: bytes) -> None:
    OUT.write(data)
    OUT.flush()


def say(**message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(request: Json) -> None:
    say(id=request["id"], result=RESULTS.get(request["method"], {}))


def size(request: Json) -> int:
    """The size of a fault, from the arguments of the call."""
    found: int = request["params"]["arguments"]["size"]
    return found


def requests() -> Iterator[Json]:
    for line in sys.stdin.buffer:
        request = json.loads(line)
        if "id" in request and "method" in request:
            yield request


def serve() -> None:
    for request in requests():
        fault = request["params"].get("arguments", {}).get("fault", "answer")
        line = (NO_ANSWERS | NO_STATELESS_ANSWERS).get(fault)
        if line is None:
            globals()[fault](request)
        else:
            write(line % request["id"] + b"\n")


# At the start


def exits_when_asked() -> None:
    next(requests())
    sys.exit(3)


def is_deaf() -> None:
    while True:
        time.sleep(1)


def reads_nothing_more() -> None:
    answer(next(requests()))
    is_deaf()


# At a call: the process


def stops_in_a_line(request: Json) -> None:
    """Writes the answer only up to the given byte."""
    text = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": RESULTS["tools/call"]}).encode() + b"\n"
    write(text[: size(request)])
    os.kill(os.getpid(), signal.SIGKILL)


def has_a_child(request: Json) -> None:
    """Leaves a child process that has its streams and outlives it."""
    if os.fork() == 0:
        is_deaf()
    answer(request)
    os.kill(os.getpid(), signal.SIGKILL)


# At a call: an answer, and more than that


def twice(request: Json) -> None:
    answer(request)
    say(id=request["id"], result={"content": [{"type": "text", "text": "again"}]})


def twice_in_two_ways(request: Json) -> None:
    answer(request)
    say(id=request["id"], error={"code": -1, "message": "no"})


def to_all_before(request: Json) -> None:
    for other in range(request["id"] + 1):
        say(id=other, result=RESULTS["tools/call"])


def notes(request: Json) -> None:
    for _ in range(size(request) // 100):
        write(NOTE * 100)
    answer(request)


def pings(request: Json) -> None:
    """As many as asked for; reads no answers meanwhile."""
    for number in range(size(request)):
        say(id=number, method="ping")
    answer(request)


def questions(request: Json) -> None:
    """As many as asked for; reads no answers meanwhile."""
    for number in range(size(request)):
        say(id=number, method="roots/list")
    answer(request)


# At a call: no answer


def to_another(request: Json) -> None:
    id_ = request["id"]
    for other in (id_ + 1, str(id_ + 1), f" {id_}", float(id_) + 0.5, None, True, [], {}):
        say(id=other, result=RESULTS["tools/call"])


NO_ANSWERS = {
    "of another version": b'{"jsonrpc": "1.0", "id": %d, "result": {}}',
    "of no version": b'{"id": %d, "result": {}}',
    "without a result": b'{"jsonrpc": "2.0", "id": %d}',
    "with a result and an error": b'{"jsonrpc": "2.0", "id": %d, "result": {}, "error": {"code": 1, "message": ""}}',
    "with a list": b'{"jsonrpc": "2.0", "id": %d, "result": []}',
    "with an error that is none": b'{"jsonrpc": "2.0", "id": %d, "error": "no"}',
    "no UTF-8": b'{"jsonrpc": "2.0", "id": %d, "result": {"a": "\xff\xfe"}}',
    "half a character": b'{"jsonrpc": "2.0", "id": %d, "result": {"a": "\\ud800"}}',
    "no number": b'{"jsonrpc": "2.0", "id": %d, "result": {"a": NaN}}',
    "too deep": b'{"jsonrpc": "2.0", "id": %d, "result": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "too deep without an end": b'{"jsonrpc": "2.0", "id": %d, "result": ' + b'{"a":' * 100_000,
}
"""Faults that are a line with the id of the request."""
NO_STATELESS_ANSWERS = {
    "of an unknown type": b'{"jsonrpc": "2.0", "id": %d, "result": {"resultType": "surprise"}}',
    "of a type that is none": b'{"jsonrpc": "2.0", "id": %d, "result": {"resultType": []}}',
    "with questions that are none": b'{"jsonrpc": "2.0", "id": %d, "result": '
    b'{"resultType": "input_required", "inputRequests": {"a": 7}}}',
}


def too_long(request: Json) -> None:
    """Writes a line of the given number of bytes."""
    write(b'{"jsonrpc": "2.0", "id": %d, "result": {"a": "' % request["id"])
    for _ in range(size(request) // MORE):
        write(b"x" * MORE)
    write(b'"}}\n')


if __name__ == "__main__":
    globals()[sys.argv[1] if len(sys.argv) > 1 else "serve"]()
