"""The audit log: one line of JSON for each request that was served, refused, or cancelled while it waited.

A line contains a digest of the arguments, or the arguments without their secrets. If a call makes another call, as in
a gateway, only the innermost call is logged, under the name of its server.

If lines can't be written, for instance on a full disk, this is logged once, the lines are counted, and requests
continue. If lines are required, they are kept instead, and no requests are accepted until they are written.
"""

import asyncio
import json
import logging
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from functools import lru_cache, partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from anyio import CancelScope
from pydantic_core import to_json

from ..concurrency import in_turns
from ..errors import CallTimeout, InputRequired, InternalError, LimitExceeded, RpcError, ToolError
from ..protocol.http.rules import Refusal, limit_exceeded
from ..protocol.identity import Peer, Principal
from ..protocol.methods import FALLBACK, Method
from ..protocol.records import record
from ..protocol.session.events import Outcome, UnhandledRequest
from ..protocol.shaping import CachedResult
from ..protocol.types.base import Params
from ..protocol.wire.jsonrpc import Failure, Prepared, json_of
from ..protocol.wire.weight import HEAVY_BYTES
from ..server.dispatch.context import Context
from ..server.extension import Extension
from ..server.features import AtOnce, Handler
from ..server.run import Run
from ..steps import Steps
from ..tracing.trace_context import current
from .floods import Floods
from .trace import Redaction, redacted

if TYPE_CHECKING:
    from .audit_file import AuditFile  # needed only if there is an audit log

log = logging.getLogger("shared.audit")

MAX_WAITING = 10_000
"""Maximum number of lines that are kept until they can be written."""
RETRY_SECONDS = 0.5
"""The number of seconds between a failure and the next attempt to write."""
MAX_REFUSED = 1_000
"""Maximum number of refusals among the waiting lines: served requests are more important."""
_MAX_TOGETHER = 16_384
"""Maximum number of bytes of lines that are written together: a fraction of the smallest file."""
_MIN_ERROR, _TOO_MANY_REQUESTS = 400, 429
# `json.dumps` would create an encoder for each call, which takes longer than the encoding.
_encode = json.JSONEncoder(separators=(",", ":"), default=str, allow_nan=False).encode
_encode_sorted = json.JSONEncoder(sort_keys=True, separators=(",", ":"), default=str).encode
_STEP, _PIECE_COST = 131_072, 64
"""The number of characters that are encoded and digested in one step, which takes two milliseconds, and the number
that take as long as the rest of the work on a value."""
_FLAT = frozenset((str, int, bool, type(None)))
_MAX_LENGTH = 200
"""Maximum number of characters of a method's name that are logged."""


@record
class Arrival:
    """The properties of the HTTP request that carried a call."""

    address: str
    session: str | None
    """A digest of the session id, since the id itself would give access to the session."""


arrival: ContextVar[Arrival | None] = ContextVar("arrival", default=None)
"""The arrival of the request that is being served, if it came over HTTP and there is an audit log."""


@record
class _Note:
    """The record of an outer call: a list with one item, which becomes True when a call within it is logged."""

    is_written: list[bool]


_outer: ContextVar[_Note | None] = ContextVar("outer", default=None)


class Audit:
    """The log of one program, for all its servers."""

    def __init__(
        self,
        file: "AuditFile",
        *,
        arguments: bool = False,
        required: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`arguments` are written without their secrets, instead of a digest; `required` lines are kept until they
        are written."""
        self.arguments = arguments
        self.lost = 0
        """The number of lines that were dropped."""
        self._file = file
        self._clock = clock
        self._required = required
        self._waiting: deque[bytes] = deque()
        self._together: list[bytes] = []
        """The lines that the next `flush` writes, and their size in bytes."""
        self._together_bytes = 0
        self._fails = False
        self._again = 0.0
        self._floods = Floods(self._write_refusal, clock)

    def write(self, entry: dict[str, Any], max_waiting: int = MAX_WAITING) -> None:
        """Write a line after the waiting ones, up to `max_waiting` of which are kept. Never raises."""
        self.flush()
        self._write(_line(entry), max_waiting)

    def write_together(self, entry: dict[str, Any], max_waiting: int = MAX_WAITING) -> None:
        """Like `write`, but with the next `flush`, together with other lines."""
        # The next request must not be accepted if a required line can't be written.
        if self._required:
            self.write(entry, max_waiting)
            return
        line = _line(entry)
        self._together.append(line)
        self._together_bytes += len(line)
        if self._together_bytes >= _MAX_TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Write the lines of `write_together`, before the answers to their requests are sent. Never raises."""
        if self._together:
            lines, self._together, self._together_bytes = self._together, [], 0
            if not self._written(b"".join(lines)):
                self.lost += len(lines)

    def _write(self, line: bytes, max_waiting: int) -> None:
        if not self._waiting and self._written(line):
            return
        if self._required and len(self._waiting) < max_waiting:
            self._waiting.append(line)
        else:
            self.lost += 1

    @property
    def is_blocked(self) -> bool:
        """True if no requests may be served, since required lines can't be written."""
        self._floods.settle()
        if self._waiting and self._clock() >= self._again:
            self._catch_up()
        return bool(self._waiting)

    def refused(self, server: str, refusal: Refusal, principal: Principal | None) -> None:
        """Log that an HTTP request, or a call over a WebSocket, was refused. For clients that are unknown or send too
        much, one line per second contains the number of refusals."""
        about = _about(principal)
        entry = {**about, "server": server, "outcome": "refused", "status": refusal.status}
        entry["reason"] = refusal.failure.message
        if principal is not None and refusal.status != _TOO_MANY_REQUESTS:
            self._write_refusal(entry)
        else:
            client = about.get("principal") or about.get("address")
            self._floods.add((client, server, refusal.status), entry)

    def served(self, server: str, method: str, path: str, principal: Principal | None, status: int = 200) -> None:
        """Log an HTTP request that does not belong to a session's requests: a stream, the end of a session, or a
        page."""
        outcome = {"outcome": "ok"} if status < _MIN_ERROR else {"outcome": "refused", "status": status}
        self.write({**_about(principal), "server": server, "method": method, "path": path[:500], **outcome})

    def settled(self, server: str, request: UnhandledRequest) -> None:
        """Log a request that ended before it reached a handler. For requests over a limit, one line per second
        contains the number of requests."""
        outcome, principal = request.outcome, request.principal
        if isinstance(outcome, Failure) and outcome.kind == LimitExceeded.kind:
            self.refused(server, Refusal(_TOO_MANY_REQUESTS, outcome), principal)
        elif isinstance(outcome, LimitExceeded):
            self.refused(server, limit_exceeded(outcome), principal)
        else:
            entry = self.entry(server, request.method, request.params, request.peer, principal)
            entry = {**entry, **_outcome_of(outcome), "ms": 0.0, **_sizes(request.params, outcome)}
            self.write_together(entry, MAX_REFUSED)

    def entry(
        self, server: str, method: str, raw: dict[str, Any], peer: Peer | None, principal: Principal | None
    ) -> dict[str, Any]:
        """Return the first fields of the line for a request with the params `raw`: the client, and its request."""
        about, unshown = self._described(server, method, raw, peer, principal)
        if unshown is not None:
            about["arguments_sha256"] = sha256(_canonical(unshown)).hexdigest()
        return about

    def entry_steps(
        self, server: str, method: str, raw: dict[str, Any], peer: Peer | None, principal: Principal | None
    ) -> Steps[dict[str, Any]]:
        """`entry` in steps."""
        about, unshown = self._described(server, method, raw, peer, principal)
        yield
        if unshown is not None:
            about["arguments_sha256"] = yield from _digest_steps(unshown)
            yield
        return about

    def _described(
        self, server: str, method: str, raw: dict[str, Any], peer: Peer | None, principal: Principal | None
    ) -> tuple[dict[str, Any], Any]:
        """Return the first fields of the line, and the arguments whose digest replaces them; None if they are
        shown."""
        about = _about(principal)
        if "session" not in about and peer is not None and peer.session is not None:
            about["session"] = f"#{peer.session}"
        client = None if peer is None or peer.info is None else peer.info.get("name")
        if client:
            about["client"] = _redacted_name(str(client)[:200])
        arguments = {name: value for name, value in raw.items() if name != "_meta"} if "_meta" in raw else raw
        about["server"] = server
        # The client has chosen the name of an unknown method.
        about["method"] = _redacted_name(method[:_MAX_LENGTH])
        about |= _object(method, arguments)
        if self.arguments and _show(arguments, about):
            return about, None
        unshown = arguments.get("arguments")
        return about, arguments if unshown is None else unshown  # some clients write null for none

    def close(self) -> None:
        """Write the waiting lines, if possible, and close the file."""
        self.flush()
        self._floods.settle(everything=True)
        self._catch_up()
        if self._waiting:
            log.error("%d lines of the audit log could not be written", len(self._waiting))
        self._file.close()

    def _write_refusal(self, entry: dict[str, Any]) -> None:
        self.write(entry, MAX_REFUSED)

    def _catch_up(self) -> None:
        while self._waiting and self._written(self._waiting[0]):
            self._waiting.popleft()

    def _written(self, line: bytes) -> bool:
        try:
            self._file.write(line)
        except (OSError, ValueError) as error:
            self._again = self._clock() + RETRY_SECONDS
            if not self._fails:
                then = "no requests are accepted until it can" if self._required else "requests continue"
                log.error("the audit log can't be written: %s; %s", error, then)
            self._fails = True
            return False
        if self._fails:
            log.warning("the audit log can be written again; %d lines were lost", self.lost)
        self._fails = False
        return True


def audited(audit: Audit, server: str) -> Extension[Any]:
    """Return the extension that logs the calls to the server with that name. It wraps all other extensions."""

    def around(method: Method, handler: Handler) -> Handler:
        async def handled(running: Run[Any], context: Context[Any], params: Any) -> Any:
            if audit.is_blocked:
                raise InternalError("the audit log can't be written; no requests are accepted until it can")
            return await _Call(audit, server, method, context, params).run(handler, running, params)

        return handled

    def around_at_once(method: Method, handler: AtOnce) -> AtOnce:
        def handled(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any] | None:
            if audit.is_blocked:
                return None
            return _Call(audit, server, method, context, params).run_at_once(handler, running, params)

        return handled

    extension = Extension[Any]("audit", around=around)
    extension.around_at_once = around_at_once

    @asynccontextmanager
    async def listening(run: Run[Any]) -> AsyncIterator[None]:
        run.hooks.on_unhandled = partial(audit.settled, server)
        run.hooks.before_sending = audit.flush
        yield

    extension.outermost, extension.lifespan = 2, listening
    return extension


class _Call:
    """One request to a handler."""

    def __init__(self, audit: Audit, server: str, method: Method, context: Context[Any], params: Params) -> None:
        self._audit = audit
        self._server = server
        # One handler serves all methods that only servers behind a gateway know.
        self._method = context.call.method.name if method.name == FALLBACK else method.name
        self._context = context
        # A call that has been answered, such as one that became a task, no longer has its params.
        raw = context.call.raw
        self._raw = params.model_dump(mode="json", by_alias=True, exclude_none=True) if raw is None else raw

    async def run(self, handler: Handler, running: Run[Any], params: Any) -> Any:
        """Call `handler`, log the call, and return the result."""
        outer, note = _outer.get(), _Note([False])
        token = _outer.set(note)
        began, result = time.perf_counter(), None
        try:
            result = await handler(running, self._context, params)
            return result
        finally:
            _outer.reset(token)
            error = sys.exc_info()[1] if result is None else None
            is_over = self._context.call.is_over
            outcome = _outcome_of(result) if error is None else _outcome_of_error(error, is_over=is_over)
            seconds, is_heavy = time.perf_counter() - began, self._context.call.weight >= HEAVY_BYTES
            if not (note.is_written[0] or is_heavy):
                self._audit.write(self._entry(outcome, seconds, result))
            elif is_heavy and not note.is_written[0]:
                with CancelScope(shield=True):
                    self._audit.write(await in_turns(self._entry_steps(outcome, seconds, result)))
            if outer is not None:
                outer.is_written[0] = True

    def run_at_once(self, handler: AtOnce, running: Run[Any], params: Any) -> dict[str, Any] | None:
        """Call `handler`, which makes no other call, and log the call if the handler answers it."""
        began = time.perf_counter()
        result = handler(running, self._context, params)
        if result is not None:
            if not isinstance(result, CachedResult):
                # Its size is needed, and unless the client's version has another form, it is sent in this form.
                result = Prepared(result)
            self._audit.write_together(self._entry(_outcome_of(result), time.perf_counter() - began, result))
            if (outer := _outer.get()) is not None:
                outer.is_written[0] = True
        return result

    def _entry(self, outcome: dict[str, Any], seconds: float, result: Any) -> dict[str, Any]:
        peer, raw = self._context.call.peer, self._raw
        entry = self._audit.entry(self._server, self._method, raw, peer, peer.principal)
        return self._completed(entry, outcome, seconds, result)

    def _entry_steps(self, outcome: dict[str, Any], seconds: float, result: Any) -> Steps[dict[str, Any]]:
        peer, raw = self._context.call.peer, self._raw
        entry = yield from self._audit.entry_steps(self._server, self._method, raw, peer, peer.principal)
        return self._completed(entry, outcome, seconds, result)

    def _completed(
        self, entry: dict[str, Any], outcome: dict[str, Any], seconds: float, result: Any
    ) -> dict[str, Any]:
        entry |= outcome
        entry["ms"] = round(seconds * 1_000, 3)
        entry |= _sizes(self._raw, result)
        return entry


def _show(arguments: dict[str, Any], about: dict[str, Any]) -> bool:
    """Add the arguments without their secrets to `about`. Return False if something was left out."""
    hidden = {"taskId", "requestState"} & arguments.keys()
    shown = {name: "[redacted]" if name in hidden else value for name, value in arguments.items()}
    redaction = Redaction()
    about["arguments"] = redaction.of(shown.get("arguments", shown))
    return not redaction.is_cut


@lru_cache(1_024)  # the same few are used again and again
def _redacted_name(name: str) -> str:
    text: str = redacted(name)
    return text


def _object(method: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the fields for the object that a call names: a tool, a prompt, or a URI."""
    name, uri = arguments.get("name"), arguments.get("uri")
    named: dict[str, Any] = {}
    if isinstance(name, str):
        named["prompt" if method.startswith("prompts/") else "tool"] = name[:500]
    if isinstance(uri, str):
        named["uri"] = redacted(uri[:2_000])
    return named


def _about(principal: Principal | None) -> dict[str, Any]:
    """Return the fields for the client of the current request, as far as it is known."""
    http_request = arrival.get()
    about: dict[str, Any] = {}
    if principal is not None:
        about = {"principal": principal.key}
        if principal.name:
            about["name"] = principal.name
        if principal.client is not None:
            about["token_client"] = principal.client
    if http_request is not None:
        about["address"] = http_request.address
        if http_request.session is not None:
            about["session"] = http_request.session
    if (span := current.get()) is not None:
        about["trace"] = span.trace_id
    return about


def _outcome_of(outcome: Outcome | Failure | None) -> dict[str, Any]:
    """Return the fields for the end of a request that was answered with `outcome`; None for a cancelled one."""
    if isinstance(outcome, Failure):
        return {"outcome": outcome.kind or "error", "code": outcome.code}
    if isinstance(outcome, BaseException):
        return _outcome_of_error(outcome, is_over=False)
    if outcome is None:
        return {"outcome": "cancelled"}
    return {"outcome": "tool_error" if outcome.get("isError") else "ok"}


def _outcome_of_error(error: BaseException, *, is_over: bool) -> dict[str, Any]:
    match error:
        case asyncio.CancelledError():
            # A call that has not been answered yet was not cancelled by anyone; its time was up.
            return {"outcome": "cancelled" if is_over else "timeout"}
        case CallTimeout():
            return {"outcome": "timeout"}
        case InputRequired():
            return {"outcome": "input_required"}
        case ToolError():
            return {"outcome": "tool_error"}
        case RpcError():
            return {"outcome": error.kind or "error", "code": error.code}
        case _:
            return {"outcome": "error"}


def _sizes(raw: dict[str, Any], result: object) -> dict[str, int]:
    """Return the bytes of a request, and of its result if it has one."""
    if isinstance(result, Prepared):
        size = len(result.json)
    elif isinstance(result, CachedResult):
        size = result.size
    else:
        size = len(json_of(result)) if isinstance(result, dict) else 0
    return {"bytes_in": len(json_of(raw)), "bytes_out": size}


def _now() -> str:
    """Return the time as ISO 8601, to the millisecond."""
    seconds, thousandths = divmod(time.time_ns() // 1_000_000, 1_000)
    return f"{_second(seconds)}.{thousandths:03}Z"


@lru_cache(1)
def _second(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _line(entry: dict[str, Any]) -> bytes:
    """Return the line of `entry`, with the current time."""
    entry = {"time": _now(), **entry}
    try:
        line = to_json(entry, inf_nan_mode="strings", fallback=str)
    except ValueError:  # a lone surrogate
        line = b"\xff"
    if _is_plain(line):
        return line + b"\n"
    # Terminals interpret some other characters, so all are escaped, by an encoder that takes three times as long.
    try:
        text = _encode(entry)
    except ValueError:  # JSON has no such numbers, although Python parses them
        entry = json.loads(json.dumps(entry, default=str), parse_constant=str)
        text = json.dumps(entry, separators=(",", ":"))
    return text.encode() + b"\n"


def _canonical(value: Any) -> bytes:
    """Return the JSON from which the logged digest is computed, with sorted names, in ASCII."""
    if isinstance(value, dict) and _FLAT.issuperset(map(type, value.values())):
        text = to_json(dict(sorted(value.items())) if len(value) > 1 else value)
        if _is_plain(text):  # the same as below, in half the time
            return text
    return _encode_sorted(value).encode()


def _digest_steps(value: Any) -> Steps[str]:
    """Return the digest of `_canonical(value)`, computed in steps."""
    digest, size = sha256(), 0
    for piece in _canonical_pieces(value):
        digest.update(piece.encode())
        size += _PIECE_COST + len(piece)
        if size >= _STEP:
            yield
            size = 0
    return digest.hexdigest()


def _canonical_pieces(value: Any) -> Iterator[str]:
    """Yield the text of `_canonical` in pieces."""
    if isinstance(value, dict) and value:
        for number, key in enumerate(sorted(value)):
            yield f"{',' if number else '{'}{_encode_sorted(key)}:"
            yield from _canonical_pieces(value[key])
        yield "}"
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield "," if number else "["
            yield from _canonical_pieces(item)
        yield "]"
    elif isinstance(value, str) and len(value) > _STEP:
        yield '"'
        for start in range(0, len(value), _STEP):
            yield _encode_sorted(value[start : start + _STEP])[1:-1]
        yield '"'
    else:
        yield _encode_sorted(value)


def _is_plain(text: bytes) -> bool:
    """Return True if the text is ASCII without DEL, which Python's encoder escapes."""
    return text.isascii() and b"\x7f" not in text
