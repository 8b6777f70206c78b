"""Requests in progress of a peer that uses a dialect.

Requests to the core get new ids, because a peer's id may be `null`, and the form of an answer depends on the method.
Answered and cancelled requests are forgotten, so only requests in progress are stored.
"""

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

from ....errors import InvalidParams, InvalidRequest, RpcError
from ...records import record
from ...types.base import CLIENT_CAPABILITIES, LOG_LEVEL, PROTOCOL_VERSION
from ...versions import NEWEST
from ..jsonrpc import Failure, Malformed, Message, Request, RequestId, failure
from ..salvage import is_text

_Object = dict[str, Any]


@record
class OpenRequest:
    """One request: the peer's id, and the method, which is "" if it was refused at once. A bare request came without
    `jsonrpc`."""

    id: RequestId | None
    method: str = ""
    is_bare: bool = False


class OpenRequests:
    """The requests in progress of one connection."""

    __slots__ = ("_by_id", "_by_number", "_numbers")

    def __init__(self) -> None:
        self._by_number: dict[int, OpenRequest] = {}
        self._by_id: dict[RequestId | None, int] = {}
        self._numbers = count(1)

    def __len__(self) -> int:
        return len(self._by_number)

    def open(
        self, id: RequestId | None, method: str, call: str, params: dict[str, Any], *, is_bare: bool = False
    ) -> Request:
        """Return the standard request to `call`, with a new id, for the peer's request to `method`.

        Raises InvalidRequest if the peer's id is in use.
        """
        if id in self._by_id:
            raise InvalidRequest("this id is in use by a request that has not been answered yet")
        number = self._by_id[id] = next(self._numbers)
        self._by_number[number] = OpenRequest(id, method, is_bare)
        return Request(number, call, params)

    def read(
        self, value: _Object, interpret: Callable[[_Object], Sequence[Message]], *, is_bare: bool = False
    ) -> Sequence[Message]:
        """Return the messages into which `interpret` converts a message from the peer, or the answer to it if that
        raises RpcError. An answer from the peer is dropped, since it gets no requests."""
        if "method" not in value and ("result" in value or "error" in value):
            return [Malformed(failure(None, InvalidRequest("there was no request")), silent=True)]
        try:
            return interpret(value)
        except RpcError as error:
            id_ = value.get("id")
            answer = failure(id_ if is_id(id_) else None, error)
            # A notification gets no answer; a message without a method is not a notification (JSON-RPC 2.0, section
            # 4.1).
            is_silent = "id" not in value and isinstance(value.get("method"), str)
            return [Malformed(answer, silent=True) if is_silent else self.refuse(answer, is_bare=is_bare)]

    def refuse(self, answer: Failure, *, is_bare: bool = False) -> Malformed:
        """Return `answer`, which has the peer's id, with a new id, so that an open request with the peer's id
        continues."""
        number = next(self._numbers)
        self._by_number[number] = OpenRequest(answer.id, is_bare=is_bare)
        return Malformed(Failure(number, answer.code, answer.message, answer.data))

    def number_of(self, id: Any) -> int | None:
        """Return the new id of the request with the peer's id; None if no such request is open."""
        return self._by_id.get(id) if is_id(id) else None

    def find(self, number: RequestId | None) -> OpenRequest | None:
        """Return the request with the new id `number`; None if it is over."""
        return self._by_number.get(number) if isinstance(number, int) else None

    def close(self, number: RequestId | None) -> OpenRequest | None:
        """Remove and return the request with the new id `number`; None if it is already over."""
        entry = self._by_number.pop(number, None) if isinstance(number, int) else None
        if entry is not None and self._by_id.get(entry.id) == number:
            del self._by_id[entry.id]
        return entry


def is_id(value: Any) -> bool:
    """Return True if a request may have this id (JSON-RPC 2.0, section 4), and its answer too."""
    return value is None or (isinstance(value, str) and is_text(value)) or type(value) is int


def add_envelope(
    params: dict[str, Any], token: RequestId | None = None, log_level: str | None = None
) -> dict[str, Any]:
    """Return `params` in the form of a stateless request of the newest version, with `token` and `log_level` as
    defaults of its progress token and its log level. Other `_meta` of the peer is kept, except for the version and
    the client capabilities: a dialect has no form for questions, or for results that contain them.

    Raises InvalidParams if `_meta` is not an object.
    """
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        raise InvalidParams('"params._meta" must be an object')
    own = {"progressToken": token, LOG_LEVEL: log_level}
    defaults = {name: value for name, value in own.items() if value is not None}
    return {**params, "_meta": {**defaults, **meta, PROTOCOL_VERSION: NEWEST.date, CLIENT_CAPABILITIES: {}}}
