"""A server on standard streams that says what no server should: `python child_messages.py FAULT`. See `child.py`."""

import itertools
import json
import sys
from typing import Any

from child import RESULTS, answer, at_calls, requests, say, write

Json = dict[str, Any]
LINE = b'{"jsonrpc": "2.0", "id": %d, "result": {"content": [{"type": "text", "text": "%b"}]}}\n'
MANY = 20_000
NOTE = b'{"jsonrpc": "2.0", "method": "notifications/told", "params": {"text": "%b"}}\n' % (b"x" * 100)
MORE = 2**20


def twice(asked: Json) -> None:
    answer(asked)
    say(id=asked["id"], result={"content": [{"type": "text", "text": "again"}]})


def twice_in_two_ways(asked: Json) -> None:
    answer(asked)
    say(id=asked["id"], error={"code": -1, "message": "no"})


def to_another(asked: Json) -> None:
    for other in (asked["id"] + 1, str(asked["id"]), float(asked["id"]) + 0.5, None, True, [], {}):
        say(id=other, result=RESULTS["tools/call"])


def to_all_before(asked: Json) -> None:
    for other in range(asked["id"] + 1):
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


def of_an_unknown_type(asked: Json) -> None:
    say(id=asked["id"], result={"resultType": "surprise"})


def of_a_type_that_is_none(asked: Json) -> None:
    say(id=asked["id"], result={"resultType": []})


def with_questions_that_are_none(asked: Json) -> None:
    say(id=asked["id"], result={"resultType": "input_required", "inputRequests": {"a": 7}})


def with_no_end_of_questions(asked: Json) -> None:
    say(id=asked["id"], result={"resultType": "input_required", "requestState": "more"})


def no_utf8(asked: Json) -> None:
    write(LINE % (asked["id"], b"\xff\xfe"))


def half_a_character(asked: Json) -> None:
    write(LINE % (asked["id"], b"\\ud800"))


def no_number(asked: Json) -> None:
    write(b'{"jsonrpc": "2.0", "id": %d, "result": {"a": NaN}}\n' % asked["id"])


def too_deep(asked: Json) -> None:
    write(b'{"jsonrpc": "2.0", "id": %d, "result": {"a": %b%b}}\n' % (asked["id"], b"[" * 100_000, b"]" * 100_000))


def too_deep_without_an_end(asked: Json) -> None:
    write(b'{"jsonrpc": "2.0", "id": %d, "result": {"a": %b\n' % (asked["id"], b'{"a":' * 100_000))


def too_long(asked: Json) -> None:
    """A line of as many bytes as asked for."""
    write(b'{"jsonrpc": "2.0", "id": %d, "result": {"a": "' % asked["id"])
    for _ in range(asked["params"]["arguments"]["size"] // MORE):
        write(b"x" * MORE)
    write(b'"}}\n')


def notes(asked: Json) -> None:
    for _ in range(MANY // 100):
        write(NOTE * 100)
    answer(asked)


def pings(asked: Json) -> None:
    """As many as asked for; reads no answers meanwhile."""
    for number in range(asked["params"]["arguments"].get("size", 900)):
        say(id=number, method="ping")
    answer(asked)


def questions(asked: Json) -> None:
    """As many as asked for; reads no answers meanwhile."""
    for number in range(asked["params"]["arguments"].get("size", 900)):
        say(id=number, method="roots/list")
    answer(asked)


def the_same_page() -> None:
    for asked in requests():
        if asked["method"] == "tools/list":
            say(id=asked["id"], result={"tools": [], "nextCursor": "again"})
        else:
            answer(asked)


def ever_new_pages() -> None:
    numbers = itertools.count()
    for asked in requests():
        if asked["method"] == "tools/list":
            say(id=asked["id"], result={"tools": [], "nextCursor": str(next(numbers))})
        else:
            answer(asked)


if __name__ == "__main__":
    fault = globals()[sys.argv[1]]
    if sys.argv[1].endswith(("page", "pages")):
        fault()
    else:
        at_calls(fault)
