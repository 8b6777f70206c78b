"""The requests of a dialect's peer that have no answer yet.

What the core gets has ids of its own: a peer's may be `null`, and its answer takes a form that depends on the method.
What is answered or cancelled is forgotten, so there are as many as are under way, and no more.
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
    """One request: under which id the peer waits, and what it called; "" where that was refused at once. A bare one
    came without `jsonrpc`."""

    id: RequestId | None
    method: str = ""
    is_bare: bool = False


class OpenRequests:
    """Those of one connection."""

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
        """The request to make of one that called `method`: it calls `call`, under an id of ours.

        Raises InvalidRequest where the peer's id is in use.
        """
        if id in self._by_id:
            raise InvalidRequest("this id is in use by a request that has no answer yet")
        number = self._by_id[id] = next(self._numbers)
        self._by_number[number] = OpenRequest(id, method, is_bare)
        return Request(number, call, params)

    def read(
        self, value: _Object, meaning: Callable[[_Object], Sequence[Message]], *, is_bare: bool = False
    ) -> Sequence[Message]:
        """The `meaning` of what the peer has sent; the answer due where that raises RpcError. An answer is dropped:
        nothing was asked."""
        if "method" not in value and ("result" in value or "error" in value):
            return [Malformed(failure(None, InvalidRequest("nothing was asked")), silent=True)]
        try:
            return meaning(value)
        except RpcError as error:
            id_ = value.get("id")
            answer = failure(id_ if is_id(id_) else None, error)
            # Nobody waits for the answer to a notification; what calls no method is none (JSON-RPC 2.0, section 4.1).
            is_silent = "id" not in value and isinstance(value.get("method"), str)
            return [Malformed(answer, silent=True) if is_silent else self.refuse(answer, is_bare=is_bare)]

    def refuse(self, answer: Failure, *, is_bare: bool = False) -> Malformed:
        """`answer`, which is for the peer's id, under one of ours: a request that has that id goes on."""
        number = next(self._numbers)
        self._by_number[number] = OpenRequest(answer.id, is_bare=is_bare)
        return Malformed(Failure(number, answer.code, answer.message, answer.data))

    def number_of(self, id: Any) -> int | None:
        """Return our id of the request with the peer's id; None if there is none."""
        return self._by_id.get(id) if is_id(id) else None

    def find(self, number: RequestId | None) -> OpenRequest | None:
        """The request that has our id `number`; None where it is over."""
        return self._by_number.get(number) if isinstance(number, int) else None

    def close(self, number: RequestId | None) -> OpenRequest | None:
        """Forget the request that has our id `number`, and gives it; None where it is over already."""
        entry = self._by_number.pop(number, None) if isinstance(number, int) else None
        if entry is not None and self._by_id.get(entry.id) == number:
            del self._by_id[entry.id]
        return entry


def is_id(value: Any) -> bool:
    """Return True if a request may have this id (JSON-RPC 2.0, section 4), and its answer too."""
    return value is None or (isinstance(value, str) and is_text(value)) or type(value) is int


def enveloped(params: dict[str, Any], token: RequestId | None = None, log_level: str | None = None) -> dict[str, Any]:
    """`params` of a request that stands for itself, in the newest version, is told of its progress by `token` and of
    what is logged from `log_level` on, where it has no own ones. What the peer says in `_meta` counts, but for the
    version and what it could answer: a dialect has no words for a question, nor for a result that asks.

    Raises InvalidParams where that is no object.
    """
    meta = params.get("_meta", {})
    if not isinstance(meta, dict):
        raise InvalidParams('"params._meta" must be an object')
    own = {"progressToken": token, LOG_LEVEL: log_level}
    defaults = {name: value for name, value in own.items() if value is not None}
    return {**params, "_meta": {**defaults, **meta, PROTOCOL_VERSION: NEWEST.date, CLIENT_CAPABILITIES: {}}}
