"""Salvages invalid JSON texts: finds the id for the answer, and the path of the error.

JSON can contain text that UTF-8 can't: clients that cut text between UTF-16 units send `"\\ud83d"`, half of the
surrogate pair of an emoji. Others send NaN, or bytes that are not UTF-8. The parser in `codec.py` rejects such a text
without returning its id, and a client that gets no answer with its id waits forever. So a rejected text is parsed
again, leniently.
"""

import json
import re
from collections.abc import Callable
from typing import Any

from pydantic_core import from_json

from ...errors import InvalidParams, InvalidRequest, ParseError, RpcError
from ...steps import Steps
from ..records import record
from .jsonrpc import Batch, Failure, Malformed, Message, Notification, Request, Response, failure, scrub

EDGE_BYTES = 4_096
"""The number of bytes at the start and at the end of a JSON text in which `read_request_id` searches."""
MAX_DEPTH = 200
"""Maximum number of nesting levels that the parser accepts."""
MAX_VALUES = 100_000
"""Maximum number of values that are searched for an error. A client can send millions of values; to search them all
would delay the others."""
_LARGE_BYTES = 65_536
"""Texts of at least this many bytes are parsed and searched in two steps."""
_MAX_PATH_LENGTH = 100
"""Maximum number of characters of a path in a message, since its names come from the peer."""

_SURROGATE = "[\ud800-\udfff]"
_NOT_UNICODE = "is not valid Unicode: it has a lone surrogate, or bytes that are not UTF-8"


@record
class Fault:
    """An error in a JSON value."""

    place: str
    """The path of the error, with dots between the names: `params.arguments.text`."""
    reason: str
    in_text: bool
    """True if the error is invalid text in a string, which U+FFFD can replace."""


def salvage(
    data: bytes, error: ParseError, read: Callable[[Any], Message], refuse: Callable[[Failure], Malformed] = Malformed
) -> Steps[Message]:
    """Return the message for a text that the parser has rejected with `error`. `read` converts a parsed value to a
    message. `refuse` converts the answer to a text that can't be parsed at all. A large text takes two steps."""
    try:
        value = read_leniently(data)
    except (RecursionError, ValueError) as reason:
        head, tail = data[:EDGE_BYTES], data[-EDGE_BYTES:]
        answered = read_answer_id(head, tail)
        if answered is not None:
            return Malformed(failure(answered, error), silent=True)
        # A text that is nested too deeply, or has a number that is too long, is JSON otherwise, so what its start and
        # end show is an id. In a text that is not JSON it could be anything.
        is_json = not isinstance(reason, json.JSONDecodeError)
        return refuse(failure(read_request_id(head, tail) if is_json else None, error))
    if len(data) >= _LARGE_BYTES:
        yield
    values = value if isinstance(value, list) else [value]
    faults = [find_fault(item) if isinstance(item, dict) else None for item in values]
    # In a batch, only the messages with an error are refused. If none has a path to an error, all of them are.
    messages = tuple(
        read(item) if fault is None and any(faults) else _replace_message(read(item), fault, error)
        for item, fault in zip(values, faults, strict=True)
    )
    return Batch(messages) if isinstance(value, list) else messages[0]


def _replace_message(message: Message, fault: Fault | None, error: ParseError) -> Message:
    """Return the error answer that replaces an invalid message, or the message with the error removed."""
    refusal: RpcError = error
    if fault is not None:
        kind = InvalidParams if fault.place.startswith("params.") else InvalidRequest
        refusal = kind(f"{fault.place} {fault.reason}")
    match message:
        case Malformed(Failure(None)):
            return Malformed(failure(None, error), message.silent)
        case Request(id_) | Malformed(Failure(id_)) if isinstance(id_, str) and not is_text(id_):
            return Malformed(failure(None, error))
        case Request(id_):
            return Malformed(failure(id_, refusal), is_call=True)
        case Response(id_):
            return failure(id_, refusal)
        case Failure(id_, code, text):
            return Failure(id_, code, scrub(text))
        case Notification(method, params) if fault is not None and fault.in_text:
            return Notification(scrub(method), scrub(params))
        case Notification():
            return Malformed(failure(None, error), silent=True)
    return message


# Lenient reading


class _NotFinite(float):
    """NaN or Infinity, which Python and JavaScript can write."""


def read_leniently(data: bytes) -> Any:
    """Return the value in `data`, which is JSON except that it may contain NaN and invalid text. Bytes that are not
    UTF-8 become lone surrogates. Raises JSONDecodeError for other data, RecursionError if it is nested too deeply,
    and another ValueError for a number that is too long."""
    text = data.decode("utf-8", "surrogateescape")
    return json.loads(text, parse_constant=_NotFinite, strict=False)


def is_text(value: str) -> bool:
    """Return True if `value` can be written in UTF-8."""
    return value.isascii() or re.search(_SURROGATE, value) is None


def find_fault(value: Any) -> Fault | None:
    """Return an error in a leniently parsed value; None if there is none, or the value is too large to be searched.
    An error that U+FFFD can't replace takes precedence over one that it can."""
    first_fault: Fault | None = None
    pending: list[tuple[Any, tuple[str, ...]]] = [(value, ())]
    budget = MAX_VALUES
    while pending:
        parent, path = pending.pop()
        # Items are counted before they are searched, so that a list of a million numbers is not searched at all.
        budget -= len(parent)
        if budget < 0:
            return None if first_fault is None else Fault(first_fault.place, first_fault.reason, in_text=False)
        if len(path) >= MAX_DEPTH:
            return _make_fault(path, f"is nested more than {MAX_DEPTH} levels deep")
        # The search uses a stack instead of recursion, since the peer chooses the depth.
        items = parent.items() if isinstance(parent, dict) else enumerate(parent)
        for key, item in items:
            kind = type(item)
            if kind is dict or kind is list:
                pending.append((item, (*path, str(key))))
            elif kind is _NotFinite:
                return _make_fault((*path, str(key)), "is NaN or Infinity, which JSON does not have")
            # The search continues, since an error that U+FFFD can't replace takes precedence.
            elif kind is str and not is_text(item) and first_fault is None:
                first_fault = _make_fault((*path, str(key)), _NOT_UNICODE, in_text=True)
            if type(key) is str and not is_text(key) and first_fault is None:
                first_fault = _make_fault((*path, key), _NOT_UNICODE, in_text=True)
    return first_fault


def _make_fault(path: tuple[str, ...], reason: str, *, in_text: bool = False) -> Fault:
    place = ".".join(path)
    short_path = place if len(place) <= _MAX_PATH_LENGTH else f"{place[:_MAX_PATH_LENGTH]}..."
    return Fault(re.sub(_SURROGATE, "\ufffd", short_path), reason, in_text)


# The ids of texts that are not parsed

_MEMBER = rb'\s*"(jsonrpc|id|method)"\s*:\s*("[^"\\]*"|-?[0-9]{1,4300})\s*'
_HEAD = rb"\s*\{((?:" + _MEMBER + rb",)*)"
_TAIL = rb"((?:," + _MEMBER + rb")+)\}\s*\Z"
_OUTCOME = re.compile(rb'\s*"(?:result|error)"\s*:')


def read_request_id(head: bytes, tail: bytes) -> str | int | None:
    """Return the id of a request that is too large to be parsed, from the start and the end of its text; None if they
    don't show that it is a request, and its id.

    Programs write the short members of a request before or after its params. Only members that follow the opening
    brace of the message, or precede its closing brace, are read, because others may be in a nested object or a
    string.
    """
    members = _read_members(head, tail)
    return _read_id(members) if b"method" in members else None


def read_answer_id(head: bytes, tail: bytes) -> str | int | None:
    """Return the id of an answer that is too large to be parsed, from the start and the end of its text; None if they
    don't show that it is an answer, and its id."""
    head_match = re.match(_HEAD, head)
    if head_match is None or _OUTCOME.match(head, head_match.end()) is None:
        return None
    members = _read_members(head, tail)
    return None if b"method" in members else _read_id(members)


def _read_members(head: bytes, tail: bytes) -> dict[bytes, bytes]:
    members: dict[bytes, bytes] = {}
    # If the text was cut off, the members at its end may be those of a nested object, so the members at the start
    # take precedence.
    for part in (re.search(_TAIL, tail), re.match(_HEAD, head)):
        if part is not None:
            members.update(re.findall(_MEMBER, part[1]))
    return members


def _read_id(members: dict[bytes, bytes]) -> str | int | None:
    try:
        request_id: str | int | None = from_json(members.get(b"id", b"null"))
    except ValueError:
        return None
    return request_id
