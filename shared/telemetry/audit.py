"""The audit log: one line of JSON for each request that was served, refused, or cancelled before it was served.

A line contains a digest of the arguments, or the arguments without their secrets. If one call makes another, as in a
gateway, only the innermost one is logged, under the name of its server.

If lines can't be written, for instance because the disk is full, that is logged once, the lines are dropped and
counted, and requests are still served. If the operator requires the log, the lines are kept instead, and no requests
are accepted until they are written.
"""

import logging
import sys
import time
from asyncio import CancelledError
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

from anyio import CancelScope

from ..concurrency import run_in_turns
from ..errors import CallTimeout, InternalError, LimitExceeded
from ..protocol.http.rules import Refusal, limit_exceeded
from ..protocol.identity import Principal
from ..protocol.methods import FALLBACK, Method
from ..protocol.session.events import Outcome, UnhandledRequest
from ..protocol.types.base import Params
from ..protocol.wire.jsonrpc import Failure, Prepared
from ..protocol.wire.weight import HEAVY_BYTES
from ..server.dispatch.context import Context
from ..server.extension import Extension
from ..server.features import AtOnce, Handler
from ..server.run import Run
from ..steps import Steps
from .audit_digest import digest, digest_steps
from .audit_line import arguments_field, call_line, client_fields, line_of, request_fields
from .floods import Floods

if TYPE_CHECKING:
    from .audit_file import AuditFile  # needed only if there is an audit log

log = logging.getLogger("shared.audit")

MAX_WAITING = 10_000
"""Maximum number of lines that are kept until they can be written, if the log is required."""
RETRY_SECONDS = 0.5
"""Seconds between a failure to write and the next attempt."""
MAX_REFUSED = 1_000
"""Number of kept lines at which refusals start being dropped: served requests are more important."""
_MAX_BUFFER_BYTES = 16_384
"""Number of buffered bytes at which lines are written: a fraction of the smallest allowed file size."""
_MIN_ERROR, _TOO_MANY_REQUESTS = 400, 429


_outer: ContextVar[list[bool] | None] = ContextVar("outer", default=None)
"""For the calls within an outer call: a list with one item, which a call sets to True when it is logged, so that the
outer call is not."""


class Audit:
    """The audit log of one program, for all its servers."""

    def __init__(
        self,
        file: "AuditFile",
        *,
        arguments: bool = False,
        required: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """If `arguments` is true, lines contain the arguments without their secrets, instead of a digest. If
        `required` is true, lines are kept until they can be written."""
        self.arguments = arguments
        self.lost_lines = 0
        """The number of lines that were dropped."""
        self._file = file
        self._clock = clock
        self._required = required
        self._waiting: deque[str] = deque()
        self._buffer: list[str] = []
        """The lines that the next `flush` writes."""
        self._buffer_bytes = 0
        self._is_failing = False
        self._retry_at = 0.0
        self._floods = Floods(self._write_refusal, clock)

    def write(self, line: str, max_waiting: int = MAX_WAITING) -> None:
        """Write a line, after those that are kept. If it can't be written, keep it if the log is required and fewer
        than `max_waiting` lines are kept; otherwise drop it. Never raises."""
        self.flush()
        if not self._waiting and self._try_write(line):
            return
        if self._required and len(self._waiting) < max_waiting:
            self._waiting.append(line)
        else:
            self.lost_lines += 1

    def write_later(self, line: str, max_waiting: int = MAX_WAITING) -> None:
        """Write a line like `write`, but together with others at the next `flush`."""
        # A required line is written at once: if that fails, the next request must already be refused.
        if self._required:
            self.write(line, max_waiting)
            return
        self._buffer.append(line)
        self._buffer_bytes += len(line)
        if self._buffer_bytes >= _MAX_BUFFER_BYTES:
            self.flush()

    def flush(self) -> None:
        """Write the lines that `write_later` has buffered. This is called before the answers to their requests are
        sent. Never raises."""
        if self._buffer:
            lines, self._buffer, self._buffer_bytes = self._buffer, [], 0
            if not self._try_write("".join(lines)):
                self.lost_lines += len(lines)

    @property
    def is_blocked(self) -> bool:
        """True if no requests may be served, because required lines could not be written. Also tries to write them
        again, and writes the counts of refusals."""
        if self._floods.current:
            self._floods.write_counts()
        if self._waiting and self._clock() >= self._retry_at:
            self._catch_up()
        return bool(self._waiting)

    def log_refusal(self, server: str, refusal: Refusal, principal: Principal | None) -> None:
        """Log that an HTTP request, or a call over a WebSocket, was refused. If an unknown client, or one that
        exceeds a limit, is refused again and again, there is only one line per second, which contains the number of
        refusals."""
        sender = client_fields(principal)
        entry = {**sender, "server": server, "outcome": "refused", "status": refusal.status}
        entry["reason"] = refusal.failure.message
        if principal is not None and refusal.status != _TOO_MANY_REQUESTS:
            self._write_refusal(entry)
        else:
            client = sender.get("principal") or sender.get("address")
            self._floods.add((client, server, refusal.status), entry)

    def log_request(
        self, server: str, method: str, path: str, principal: Principal | None, status: int = 200
    ) -> None:
        """Log an HTTP request without a protocol message: for a stream, the end of a session, or a web page."""
        outcome = {"outcome": "ok"} if status < _MIN_ERROR else {"outcome": "refused", "status": status}
        self.write(
            line_of({**client_fields(principal), "server": server, "method": method, "path": path[:500], **outcome})
        )

    def log_unhandled(self, server: str, request: UnhandledRequest) -> None:
        """Log a request that ended before it reached a handler. If it exceeded a limit, it is logged as a refusal."""
        outcome, principal = request.outcome, request.principal
        if isinstance(outcome, Failure) and outcome.kind == LimitExceeded.kind:
            self.log_refusal(server, Refusal(_TOO_MANY_REQUESTS, outcome), principal)
        elif isinstance(outcome, LimitExceeded):
            self.log_refusal(server, limit_exceeded(outcome), principal)
        else:
            raw = request.params
            fields = request_fields(server, request.method, raw, request.peer, principal)
            self.write_later(self.line(fields, raw, outcome, 0.0), MAX_REFUSED)

    def line(
        self, request: str, raw: dict[str, Any], outcome: Outcome | Failure | BaseException | None, seconds: float
    ) -> str:
        """Return the line of a request. `request` are its first fields as JSON, `raw` its params, `outcome` its
        result or error (None if it was cancelled), and `seconds` its duration."""
        fields, digested = self._with_arguments(request, raw)
        if digested is not None:
            fields += f',"arguments_sha256":"{digest(digested)}"'
        return call_line(fields, outcome, seconds, raw)

    def line_steps(
        self, request: str, raw: dict[str, Any], outcome: Outcome | BaseException | None, seconds: float
    ) -> Steps[str]:
        """Return the same as `line`, in steps, between which other tasks can run."""
        fields, digested = self._with_arguments(request, raw)
        yield
        if digested is not None:
            fields += f',"arguments_sha256":"{yield from digest_steps(digested)}"'
            yield
        return call_line(fields, outcome, seconds, raw)

    def _with_arguments(self, fields: str, raw: dict[str, Any]) -> tuple[str, Any]:
        """Return `fields`, with the arguments appended if the log contains them, and the value whose digest has to be
        added (None if the arguments are complete)."""
        arguments = {name: value for name, value in raw.items() if name != "_meta"} if "_meta" in raw else raw
        if self.arguments:
            field, is_cut = arguments_field(arguments)
            fields += f",{field}"
            if not is_cut:
                return fields, None
        digested = arguments.get("arguments")
        return fields, arguments if digested is None else digested  # some clients write null for none

    def close(self) -> None:
        """Write the kept lines, if possible, and close the file."""
        self.flush()
        self._floods.write_counts(all_floods=True)
        self._catch_up()
        if self._waiting:
            log.error("%d lines of the audit log could not be written", len(self._waiting))
        self._file.close()

    def _write_refusal(self, entry: dict[str, Any]) -> None:
        self.write(line_of(entry), MAX_REFUSED)

    def _catch_up(self) -> None:
        while self._waiting and self._try_write(self._waiting[0]):
            self._waiting.popleft()

    def _try_write(self, lines: str) -> bool:
        try:
            self._file.write(lines.encode())
        except (OSError, ValueError) as error:
            self._retry_at = self._clock() + RETRY_SECONDS
            if not self._is_failing:
                consequence = "no requests are accepted until it can" if self._required else "requests continue"
                log.error("the audit log can't be written: %s; %s", error, consequence)
            self._is_failing = True
            return False
        if self._is_failing:
            log.warning("the audit log can be written again; %d lines were lost", self.lost_lines)
        self._is_failing = False
        return True


def audit_calls(audit: Audit, server: str) -> Extension[Any]:
    """Return the extension that logs the calls of the server called `server`. It wraps all other extensions except
    that of traces."""

    def around(method: Method, handler: Handler) -> Handler:
        async def handle(run: Run[Any], context: Context[Any], params: Any) -> Any:
            if audit.is_blocked:
                raise InternalError("the audit log can't be written; no requests are accepted until it can")
            return await _Call(audit, server, method, context, params).run(handler, run, params)

        return handle

    def around_at_once(method: Method, handler: AtOnce) -> AtOnce:
        def handle(run: Run[Any], context: Context[Any], params: Any) -> dict[str, Any] | None:
            if audit.is_blocked:
                return None
            began = time.perf_counter()
            result = handler(run, context, params)
            if result is None:
                return None
            if type(result) is dict:
                # The line contains the size of the JSON. Encode it once, since it is sent too, unless the client's
                # version needs another form.
                result = Prepared(result)
            call, seconds = context.call, time.perf_counter() - began
            raw, peer = call.raw, call.peer
            fields = request_fields(server, method.name, raw, peer, peer.principal)
            audit.write_later(audit.line(fields, raw, result, seconds))
            return result

        return handle

    extension = Extension[Any]("audit", around=around)
    extension.around_at_once = around_at_once

    @asynccontextmanager
    async def install_hooks(run: Run[Any]) -> AsyncIterator[None]:
        run.hooks.on_unhandled = partial(audit.log_unhandled, server)
        run.hooks.before_sending = audit.flush
        yield

    extension.rank, extension.lifespan = 2, install_hooks
    return extension


class _Call:
    """One call of a handler, which is logged."""

    def __init__(self, audit: Audit, server: str, method: Method, context: Context[Any], params: Params) -> None:
        self._audit = audit
        self._server = server
        # One fallback handler serves all methods that only servers behind a gateway have, so use the name in the
        # request.
        self._method = context.call.method.name if method.name == FALLBACK else method.name
        self._context = context
        # A call that has already been answered, such as one that became a task, no longer has its params as received.
        raw = context.call.raw
        self._raw = params.model_dump(mode="json", by_alias=True, exclude_none=True) if raw is None else raw
        # A gateway may list the object under another name than its server.
        for key in ("name", "uri"):
            if isinstance(own_name := getattr(params, key, None), str) and self._raw.get(key, own_name) != own_name:
                self._raw = {**self._raw, key: own_name}

    async def run(self, handler: Handler, run: Run[Any], params: Any) -> Any:
        """Call `handler` and return the result; then log the call, unless a call within it has been logged."""
        outer, is_written = _outer.get(), [False]
        token = _outer.set(is_written)
        began, result = time.perf_counter(), None
        try:
            result = await handler(run, self._context, params)
            return result
        finally:
            _outer.reset(token)
            if not is_written[0]:
                await self._log(result, sys.exc_info()[1], time.perf_counter() - began)
            if outer is not None:
                outer[0] = True

    async def _log(self, result: dict[str, Any] | None, error: BaseException | None, seconds: float) -> None:
        audit, raw, call = self._audit, self._raw, self._context.call
        outcome = error if result is None else result
        # If the call has not been answered, it was cancelled because it exceeded its time limit, not by the client.
        if isinstance(outcome, CancelledError) and not call.is_over:
            outcome = CallTimeout(seconds)
        fields = request_fields(self._server, self._method, raw, call.peer, call.peer.principal)
        if call.weight < HEAVY_BYTES:
            line = audit.line(fields, raw, outcome, seconds)
        else:
            with CancelScope(shield=True):
                line = await run_in_turns(audit.line_steps(fields, raw, outcome, seconds))
        audit.write(line)
