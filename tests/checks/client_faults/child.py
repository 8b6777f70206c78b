"""A server on standard streams that is good but for one fault: `python child.py FAULT` is so all the time, and
`python child.py` as the argument `fault` of a call says.

It is run without site packages, and imports nothing of the project.
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


def answer(asked: Json) -> None:
    say(id=asked["id"], result=RESULTS.get(asked["method"], {}))


def answer_with(asked: Json, result: bytes) -> None:
    write(b'{"jsonrpc": "2.0", "id": %d, "result": %b}\n' % (asked["id"], result))


def size(asked: Json) -> int:
    """What a fault is told to be the size of."""
    found: int = asked["params"]["arguments"]["size"]
    return found


def requests() -> Iterator[Json]:
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            yield asked


def serve() -> None:
    for asked in requests():
        fault = asked["params"].get("arguments", {}).get("fault")
        (globals()[fault] if fault else answer)(asked)


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


# At a call: the process


def stops_in_a_line(asked: Json) -> None:
    """Its answer up to the byte that is asked for, and no more."""
    text = json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": RESULTS["tools/call"]}).encode() + b"\n"
    write(text[: size(asked)])
    os.kill(os.getpid(), signal.SIGKILL)


def has_a_child(asked: Json) -> None:
    """Leaves one that has its streams and outlives it."""
    if os.fork() == 0:
        is_deaf()
    answer(asked)
    os.kill(os.getpid(), signal.SIGKILL)


# At a call: an answer, and more than that


def twice(asked: Json) -> None:
    answer(asked)
    say(id=asked["id"], result={"content": [{"type": "text", "text": "again"}]})


def twice_in_two_ways(asked: Json) -> None:
    answer(asked)
    say(id=asked["id"], error={"code": -1, "message": "no"})


def to_all_before(asked: Json) -> None:
    for other in range(asked["id"] + 1):
        say(id=other, result=RESULTS["tools/call"])


def notes(asked: Json) -> None:
    for _ in range(size(asked) // 100):
        write(NOTE * 100)
    answer(asked)


def pings(asked: Json) -> None:
    """As many as asked for; reads no answers meanwhile."""
    for number in range(size(asked)):
        say(id=number, method="ping")
    answer(asked)


def questions(asked: Json) -> None:
    """As many as asked for; reads no answers meanwhile."""
    for number in range(size(asked)):
        say(id=number, method="roots/list")
    answer(asked)


# At a call: no answer


def to_another(asked: Json) -> None:
    for other in (asked["id"] + 1, str(asked["id"]), float(asked["id"]) + 0.5, None, True, [], {}):
        say(id=other, result=RESULTS["tools/call"])


def of_another_version(asked: Json) -> None:
    write(json.dumps({"jsonrpc": "1.0", "id": asked["id"], "result": {}}).encode() + b"\n")


def of_no_version(asked: Json) -> None:
    write(json.dumps({"id": asked["id"], "result": {}}).encode() + b"\n")


def without_a_result(asked: Json) -> None:
    say(id=asked["id"])


def with_a_result_and_an_error(asked: Json) -> None:
    say(id=asked["id"], result={}, error={"code": 1, "message": "no"})


def with_a_list(asked: Json) -> None:
    say(id=asked["id"], result=[])


def with_an_error_that_is_none(asked: Json) -> None:
    say(id=asked["id"], error="no")


def no_utf8(asked: Json) -> None:
    answer_with(asked, b'{"content": [{"type": "text", "text": "\xff\xfe"}]}')


def half_a_character(asked: Json) -> None:
    answer_with(asked, b'{"content": [{"type": "text", "text": "\\ud800"}]}')


def no_number(asked: Json) -> None:
    answer_with(asked, b'{"a": NaN}')


def too_deep(asked: Json) -> None:
    answer_with(asked, b'{"a": %b%b}' % (b"[" * 100_000, b"]" * 100_000))


def too_deep_without_an_end(asked: Json) -> None:
    answer_with(asked, b'{"a": ' + b'{"a":' * 100_000)


def too_long(asked: Json) -> None:
    """A line of as many bytes as asked for."""
    write(b'{"jsonrpc": "2.0", "id": %d, "result": {"a": "' % asked["id"])
    for _ in range(size(asked) // MORE):
        write(b"x" * MORE)
    write(b'"}}\n')


# At a call of the stateless era


def of_an_unknown_type(asked: Json) -> None:
    say(id=asked["id"], result={"resultType": "surprise"})


def of_a_type_that_is_none(asked: Json) -> None:
    say(id=asked["id"], result={"resultType": []})


def with_questions_that_are_none(asked: Json) -> None:
    say(id=asked["id"], result={"resultType": "input_required", "inputRequests": {"a": 7}})


if __name__ == "__main__":
    globals()[sys.argv[1] if len(sys.argv) > 1 else "serve"]()
