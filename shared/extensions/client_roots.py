"""Limits each client to its own roots: the handlers of its calls receive a state that was made for these roots.

In a session with a handshake, the client is asked for its roots by the first call that needs them, and again after it
has reported a change. In the stateless era, it is asked in each call of a method that allows requests for input. In a
call of any other method, the state is that for an empty list of roots, which gives the least access. A client without
the capability `roots` receives the server's own state.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import field, replace
from typing import Any
from weakref import WeakKeyDictionary

import anyio

from ..errors import InvalidParams, PeerError, ToolError
from ..protocol.methods import Method
from ..protocol.records import mutable_record
from ..protocol.session.server import ServerSession
from ..server.dispatch.context import Context
from ..server.extension import Extension
from ..server.features import AtOnce, Handler
from ..server.run import Run
from ..server.running import Opening

Narrow = Callable[[Any, Sequence[str]], Awaitable[Any]]
"""A function from the server's state and the URIs of a client's roots to the state for that client."""

_METHODS_WITHOUT_STATE = {"tools/list", "resources/templates/list", "resources/unsubscribe", "prompts/list"}
"""The methods whose handlers do not use the state of the server."""


def narrow_to_roots(opening: Opening, narrow: Narrow) -> None:
    """Give each call of a client that declared roots the state that `narrow` returns. If the client does not list its
    roots, its calls that need the state fail. For use in a lifespan."""
    roots = ClientRoots(narrow, opening.limits.roots_seconds)
    extension = Extension[Any]("client roots", around=roots.around)
    extension.around_at_once = roots.around_at_once
    opening.extend(extension)


@mutable_record
class _SessionRoots:
    """The roots of one session."""

    state: Any = None
    """The state for the client."""
    changes: int = -1
    """The number of changes of its roots that the client had reported when they were requested; -1 before."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    """Held by the call that requests the roots."""
    failures: int = 0
    """The number of times that the client did not list its roots."""
    refusal: str = ""
    """The error of the last failure."""


class ClientRoots:
    """The roots of the clients of one server."""

    def __init__(self, narrow: Narrow, seconds: float) -> None:
        """A client has `seconds` to list its roots."""
        self._narrow = narrow
        self._seconds = seconds
        self._sessions: WeakKeyDictionary[ServerSession, _SessionRoots] = WeakKeyDictionary()

    def around(self, method: Method, handler: Handler) -> Handler:
        """Return a handler for `method` that calls `handler` with the state for the client."""
        if method.name in _METHODS_WITHOUT_STATE:
            return handler

        async def handle(run: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
            state = await self._get_state(context, method.multi_round)
            return await handler(run, replace(context, state=state), params)

        return handle

    def around_at_once(self, method: Method, handler: AtOnce) -> AtOnce:
        """Return the same for a handler that answers at once. It answers only clients without roots, and clients
        whose state is known."""

        def handle(run: Run[Any], context: Context[Any], params: Any) -> dict[str, Any] | None:
            if not context.peer.can("roots"):
                return handler(run, context, params)
            session = context.link.session
            cached = self._sessions.get(session)
            if cached is None or cached.changes != session.roots_changed:
                return None
            return handler(run, replace(context, state=cached.state), params)

        return handle

    async def _get_state(self, context: Context[Any], may_ask: bool) -> Any:
        if not context.peer.can("roots"):
            return context.state
        if not context.peer.has_handshake:
            return await self._narrow_state(context) if may_ask else await self._narrow(context.state, [])
        session = context.link.session
        cached = self._sessions.get(session)
        if cached is None:
            cached = self._sessions[session] = _SessionRoots()
        if cached.changes != session.roots_changed:
            await self._request_roots(cached, context)
        return cached.state

    async def _request_roots(self, cached: _SessionRoots, context: Context[Any]) -> None:
        """Request the roots from the client, or wait for another call that is doing so. Raises ToolError if the
        client does not list them."""
        session, failures = context.link.session, cached.failures
        async with cached.lock:
            if cached.failures != failures:
                raise ToolError(cached.refusal)
            changes = session.roots_changed
            if cached.changes == changes:
                return
            try:
                with anyio.fail_after(self._seconds):
                    state = await self._narrow_state(context)
            except (PeerError, InvalidParams, TimeoutError) as error:
                reason = str(error) or f"it did not answer within {self._seconds:g} s"
                cached.failures += 1
                cached.refusal = f"this server works only in the roots of its client, which are unknown: {reason}"
                raise ToolError(cached.refusal) from None
            # If the roots changed during the request, `changes` is outdated, so the next call requests them again.
            cached.state, cached.changes = state, changes

    async def _narrow_state(self, context: Context[Any]) -> Any:
        return await self._narrow(context.state, [root.uri for root in await context.roots()])
