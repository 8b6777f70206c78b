"""The audit log: one line of JSON for each request that was served, refused, or cancelled while it waited.

A line contains a digest of the arguments, or the arguments without their secrets. If a call makes another call, as in
a gateway, only the innermost call is logged, under the name of its server.

If lines can't be written, for instance on a full disk, this is logged once, the lines are counted, and requests
continue. If lines are required, they are kept instead, and no requests are accepted until they are written.
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

from ..concurrency import in_turns
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
from .audit_line import call_line, client_fields, line_of, request_fields, shown_arguments
from .floods import Floods

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


_outer: ContextVar[list[bool] | None] = ContextVar("outer", default=None)
"""A list with one item for an outer call, which becomes True when a call within it is logged."""


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
        self._waiting: deque[str] = deque()
        self._together: list[str] = []
        """The lines that the next `flush` writes, and their size in bytes."""
        self._together_bytes = 0
        self._fails = False
        self._again = 0.0
        self._floods = Floods(self._write_refusal, clock)

    def write(self, line: str, max_waiting: int = MAX_WAITING) -> None:
        """Write a line after the waiting ones, up to `max_waiting` of which are kept. Never raises."""
        self.flush()
        self._write(line, max_waiting)

    def write_together(self, line: str, max_waiting: int = MAX_WAITING) -> None:
        """Like `write`, but with the next `flush`, together with other lines."""
        # The next request must not be accepted if a required line can't be written.
        if self._required:
            self.write(line, max_waiting)
            return
        self._together.append(line)
        self._together_bytes += len(line)
        if self._together_bytes >= _MAX_TOGETHER:
            self.flush()

    def flush(self) -> None:
        """Write the lines of `write_together`, before the answers to their requests are sent. Never raises."""
        if self._together:
            lines, self._together, self._together_bytes = self._together, [], 0
            if not self._written("".join(lines)):
                self.lost += len(lines)

    def _write(self, line: str, max_waiting: int) -> None:
        if not self._waiting and self._written(line):
            return
        if self._required and len(self._waiting) < max_waiting:
            self._waiting.append(line)
        else:
            self.lost += 1

    @property
    def is_blocked(self) -> bool:
        """True if no requests may be served, since required lines can't be written."""
        if self._floods.recent:
            self._floods.settle()
        if self._waiting and self._clock() >= self._again:
            self._catch_up()
        return bool(self._waiting)

    def refused(self, server: str, refusal: Refusal, principal: Principal | None) -> None:
        """Log that an HTTP request, or a call over a WebSocket, was refused. For clients that are unknown or send too
        much, one line per second contains the number of refusals."""
        about = client_fields(principal)
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
        self.write(
            line_of({**client_fields(principal), "server": server, "method": method, "path": path[:500], **outcome})
        )

    def settled(self, server: str, request: UnhandledRequest) -> None:
        """Log a request that ended before it reached a handler. For requests over a limit, one line per second
        contains the number of requests."""
        outcome, principal = request.outcome, request.principal
        if isinstance(outcome, Failure) and outcome.kind == LimitExceeded.kind:
            self.refused(server, Refusal(_TOO_MANY_REQUESTS, outcome), principal)
        elif isinstance(outcome, LimitExceeded):
            self.refused(server, limit_exceeded(outcome), principal)
        else:
            raw = request.params
            fields = request_fields(server, request.method, raw, request.peer, principal)
            self.write_together(self.line(fields, raw, outcome, 0.0), MAX_REFUSED)

    def line(
        self, request: str, raw: dict[str, Any], outcome: Outcome | Failure | BaseException | None, seconds: float
    ) -> str:
        """Return the line of a request with the fields `request` and the params `raw`, which ended with `outcome`
        after some seconds; None if it was cancelled."""
        fields, hashed = self._with_arguments(request, raw)
        if hashed is not None:
            fields += f',"arguments_sha256":"{digest(hashed)}"'
        return call_line(fields, outcome, seconds, raw)

    def line_steps(
        self, request: str, raw: dict[str, Any], outcome: Outcome | BaseException | None, seconds: float
    ) -> Steps[str]:
        """`line` in steps."""
        fields, hashed = self._with_arguments(request, raw)
        yield
        if hashed is not None:
            fields += f',"arguments_sha256":"{yield from digest_steps(hashed)}"'
            yield
        return call_line(fields, outcome, seconds, raw)

    def _with_arguments(self, fields: str, raw: dict[str, Any]) -> tuple[str, Any]:
        """Return `fields` with the arguments, if they are shown, and the arguments whose digest follows, or None."""
        arguments = {name: value for name, value in raw.items() if name != "_meta"} if "_meta" in raw else raw
        if self.arguments:
            shown, is_cut = shown_arguments(arguments)
            fields += f",{shown}"
            if not is_cut:
                return fields, None
        hashed = arguments.get("arguments")
        return fields, arguments if hashed is None else hashed  # some clients write null for none

    def close(self) -> None:
        """Write the waiting lines, if possible, and close the file."""
        self.flush()
        self._floods.settle(everything=True)
        self._catch_up()
        if self._waiting:
            log.error("%d lines of the audit log could not be written", len(self._waiting))
        self._file.close()

    def _write_refusal(self, entry: dict[str, Any]) -> None:
        self.write(line_of(entry), MAX_REFUSED)

    def _catch_up(self) -> None:
        while self._waiting and self._written(self._waiting[0]):
            self._waiting.popleft()

    def _written(self, lines: str) -> bool:
        try:
            self._file.write(lines.encode())
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
            began = time.perf_counter()
            result = handler(running, context, params)
            if result is None:
                return None
            if type(result) is dict:
                # Its size is needed, and unless the client's version has another form, it is sent in this form.
                result = Prepared(result)
            call, seconds = context.call, time.perf_counter() - began
            raw, peer = call.raw, call.peer
            fields = request_fields(server, method.name, raw, peer, peer.principal)
            audit.write_together(audit.line(fields, raw, result, seconds))
            # A handler that answers at once makes no other call, but may be called by one.
            if (outer := _outer.get()) is not None:
                outer[0] = True
            return result

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
        outer, is_written = _outer.get(), [False]
        token = _outer.set(is_written)
        began, result = time.perf_counter(), None
        try:
            result = await handler(running, self._context, params)
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
        # A call that has not been answered yet was not cancelled by anyone; its time was up.
        if isinstance(outcome, CancelledError) and not call.is_over:
            outcome = CallTimeout(seconds)
        fields = request_fields(self._server, self._method, raw, call.peer, call.peer.principal)
        if call.weight < HEAVY_BYTES:
            line = audit.line(fields, raw, outcome, seconds)
        else:
            with CancelScope(shield=True):
                line = await in_turns(audit.line_steps(fields, raw, outcome, seconds))
        audit.write(line)
