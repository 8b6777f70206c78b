"""The requests in progress of a peer that uses a dialect.

Each request gets a new id before it reaches the rest of the package, because the peer's id may be `null`. The peer's
id and the method are stored until the request is answered or cancelled: the answer needs both, because its form
depends on the method.
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
    """A request in progress."""

    id: RequestId | None
    """The peer's id."""
    method: str = ""
    """The method, in the peer's form; empty if the request was refused before its method was known."""
    lacks_jsonrpc: bool = False
    """True if the request had no `jsonrpc`, so its answer has none either."""


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
        self,
        id: RequestId | None,
        method: str,
        internal_method: str,
        params: dict[str, Any],
        *,
        lacks_jsonrpc: bool = False,
    ) -> Request:
        """Store the peer's request for `method`. Return the internal request for `internal_method`, with a new id.

        Raises InvalidRequest if the peer's id is in use.
        """
        if id in self._by_id:
            raise InvalidRequest("this id is in use by a request that has not been answered yet")
        number = self._by_id[id] = next(self._numbers)
        self._by_number[number] = OpenRequest(id, method, lacks_jsonrpc)
        return Request(number, internal_method, params)

    def read(
        self, value: _Object, interpret: Callable[[_Object], Sequence[Message]], *, lacks_jsonrpc: bool = False
    ) -> Sequence[Message]:
        """Return the messages that `interpret` returns for a JSON object from the peer; if it raises RpcError, the
        error to answer. An answer from the peer is dropped, since the peer receives no requests."""
        if "method" not in value and ("result" in value or "error" in value):
            return [Malformed(failure(None, InvalidRequest("there was no request")), silent=True)]
        try:
            return interpret(value)
        except RpcError as error:
            id_ = value.get("id")
            answer = failure(id_ if is_id(id_) else None, error)
            # A notification is not answered. Without a method it is not a notification (JSON-RPC 2.0, section 4.1).
            is_silent = "id" not in value and isinstance(value.get("method"), str)
            return [Malformed(answer, silent=True) if is_silent else self.refuse(answer, lacks_jsonrpc=lacks_jsonrpc)]

    def refuse(self, answer: Failure, *, lacks_jsonrpc: bool = False) -> Malformed:
        """Return `answer`, which has the peer's id, with a new id. So a request in progress that has the same id is
        not ended by this answer."""
        number = next(self._numbers)
        self._by_number[number] = OpenRequest(answer.id, lacks_jsonrpc=lacks_jsonrpc)
        return Malformed(Failure(number, answer.code, answer.message, answer.data))

    def number_of(self, id: Any) -> int | None:
        """Return the new id of the request with the peer's id; None if no such request is open."""
        return self._by_id.get(id) if is_id(id) else None

    def find(self, number: RequestId | None) -> OpenRequest | None:
        """Return the request with the new id `number`; None if it is no longer in progress."""
        return self._by_number.get(number) if isinstance(number, int) else None

    def close(self, number: RequestId | None) -> OpenRequest | None:
        """Remove and return the request with the new id `number`; None if it is no longer in progress."""
        entry = self._by_number.pop(number, None) if isinstance(number, int) else None
        if entry is not None and self._by_id.get(entry.id) == number:
            del self._by_id[entry.id]
        return entry


def is_id(value: Any) -> bool:
    """Return True if a request may have this id (JSON-RPC 2.0, section 4)."""
    return value is None or (isinstance(value, str) and is_text(value)) or type(value) is int


def add_envelope(
    params: dict[str, Any], token: RequestId | None = None, log_level: str | None = None
) -> dict[str, Any]:
    """Return `params` in the form of a stateless request of the newest version, with `token` as its progress token
    and `log_level` as its log level, unless the peer's `_meta` has them. The rest of that `_meta` is kept too, except
    for the version and the client capabilities: without capabilities the server sends no requests to the client, for
    which a dialect has no form.

    Raises InvalidParams if `_meta` is not an object.
    """
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        raise InvalidParams('"params._meta" must be an object')
    options = {"progressToken": token, LOG_LEVEL: log_level}
    defaults = {name: value for name, value in options.items() if value is not None}
    return {**params, "_meta": {**defaults, **meta, PROTOCOL_VERSION: NEWEST.date, CLIENT_CAPABILITIES: {}}}
