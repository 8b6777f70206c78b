"""A server on standard streams that is good but for one fault, which it is told by name: `python child.py FAULT`.

It is run without site packages, and imports nothing of the project.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
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


def write(data: bytes) -> None:
    OUT.write(data)
    OUT.flush()


def say(**message: Any) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def answer(asked: Json) -> None:
    say(id=asked["id"], result=RESULTS.get(asked["method"], {}))


def requests() -> Iterator[Json]:
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            yield asked


def serve() -> None:
    for asked in requests():
        answer(asked)


def at_calls(fault: Callable[[Json], object]) -> None:
    """Does `fault` to calls of the tool "work", and serves what else is asked."""
    for asked in requests():
        if asked["method"] == "tools/call" and asked["params"]["name"] == "work":
            fault(asked)
        else:
            answer(asked)


# At the start


def exits() -> None:
    sys.exit(3)


def exits_when_asked() -> None:
    next(requests())
    sys.exit(3)


def is_mute() -> None:
    for _ in requests():
        pass


def is_deaf() -> None:
    while True:
        time.sleep(1)


def reads_nothing_more() -> None:
    answer(next(requests()))
    is_deaf()


def is_stubborn() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    serve()
    is_deaf()


def floods_stderr() -> None:
    for asked in requests():
        sys.stderr.write("what a day\n" * 10_000 + "x" * 300_000)
        answer(asked)


def prints_rubbish() -> None:
    for asked in requests():
        write(
            b'Welcome!\n\n\xff\xfe\x00\n{"jsonrpc"\n[]\n{}\nnull\n7\n"id"\n[1, {"a": 1}]\n{"id": {}}\n'
            + b"[" * 5_000
            + b"\n"
        )
        answer(asked)


# At a call


def closes_stdout(_asked: Json) -> None:
    os.close(1)


def kills_itself(_asked: Json) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def stops_in_a_line(asked: Json) -> None:
    """Its answer up to the byte that is asked for, and no more."""
    text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": RESULTS["tools/call"]}).encode() + b"\n"
    write(text[: asked["params"]["arguments"]["size"]])
    os.kill(os.getpid(), signal.SIGKILL)


def has_a_child(asked: Json) -> None:
    """Leaves one that has its streams and outlives it."""
    if os.fork() == 0:
        is_deaf()
    answer(asked)
    os.kill(os.getpid(), signal.SIGKILL)


AT_START = (
    exits,
    exits_when_asked,
    is_mute,
    is_deaf,
    reads_nothing_more,
    is_stubborn,
    floods_stderr,
    prints_rubbish,
    serve,
)
AT_CALLS = (closes_stdout, kills_itself, stops_in_a_line, has_a_child)

if __name__ == "__main__":
    faults = {one.__name__: one for one in AT_START}
    if sys.argv[1] in faults:
        faults[sys.argv[1]]()
    else:
        at_calls({one.__name__: one for one in AT_CALLS}[sys.argv[1]])
