"""Serves each client only in its own roots: its calls get a state made for these roots.

A client with a session is asked for its roots once, by the first call that needs them, and again after it has
reported a change. A client without a session is asked in each call that allows questions; in any other call it is
treated as a client without roots, with the least access.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from weakref import WeakKeyDictionary

import anyio

from ..errors import InvalidParams, PeerError, ToolError
from ..protocol.methods import Method
from ..protocol.session.server import ServerSession
from ..server.dispatch.context import Context
from ..server.extension import Extension
from ..server.features import AtOnce, Handler
from ..server.run import Run
from ..server.running import Opening

Narrow = Callable[[Any, Sequence[str]], Awaitable[Any]]
"""Derives, from the server's state, the state for a client whose roots have these URIs."""

# Methods whose handlers do not use the state of the server.
_STATELESS_METHODS = {"tools/list", "resources/templates/list", "resources/unsubscribe", "prompts/list"}


def narrow_to_roots(opening: Opening, narrow: Narrow) -> None:
    """Give each call of a client with roots the state that `narrow` makes from the server's own state and the URIs of
    the roots. If the client does not name its roots, calls that need the state fail. For use in a lifespan."""
    roots = ClientRoots(narrow, opening.limits.roots_seconds)
    extension = Extension[Any]("client roots", around=roots.around)
    extension.around_at_once = roots.around_at_once
    opening.extend(extension)


@dataclass(slots=True, eq=False, repr=False)
class _SessionRoots:
    """The state for one session."""

    state: Any = None
    changes: int = -1
    """The number of changes to its roots that the client had reported when it was asked."""
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    """Held by the call that asks the client."""
    failures: int = 0
    refusal: str = ""
    """The error after the last failure."""


class ClientRoots:
    """The states for the clients of one server."""

    def __init__(self, narrow: Narrow, seconds: float) -> None:
        """A client has `seconds` to list its roots."""
        self._narrow = narrow
        self._seconds = seconds
        self._known: WeakKeyDictionary[ServerSession, _SessionRoots] = WeakKeyDictionary()

    def around(self, method: Method, handler: Handler) -> Handler:
        """Return the handler of `method`, called with the state for its client."""
        if method.name in _STATELESS_METHODS:
            return handler

        async def handle(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any]:
            state = await self._get_state(context, method.multi_round)
            return await handler(running, replace(context, state=state), params)

        return handle

    def around_at_once(self, method: Method, handler: AtOnce) -> AtOnce:
        """Return the handler that answers at once, for clients without roots and for clients whose state is known."""

        def handle(running: Run[Any], context: Context[Any], params: Any) -> dict[str, Any] | None:
            if not context.peer.can("roots"):
                return handler(running, context, params)
            session = context.link.session
            cached = self._known.get(session)
            if cached is None or cached.changes != session.roots_changed:
                return None
            return handler(running, replace(context, state=cached.state), params)

        return handle

    async def _get_state(self, context: Context[Any], may_ask: bool) -> Any:
        if not context.peer.can("roots"):
            return context.state
        if not context.peer.has_handshake:
            return await self._narrow_state(context) if may_ask else await self._narrow(context.state, [])
        session = context.link.session
        cached = self._known.get(session)
        if cached is None:
            cached = self._known[session] = _SessionRoots()
        if cached.changes != session.roots_changed:
            await self._ask_roots(cached, context)
        return cached.state

    async def _ask_roots(self, cached: _SessionRoots, context: Context[Any]) -> None:
        """Ask the client, unless another call is asking it. Raises ToolError if the client does not answer."""
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
            # The next call asks again, since the roots have changed meanwhile.
            cached.state, cached.changes = state, changes

    async def _narrow_state(self, context: Context[Any]) -> Any:
        return await self._narrow(context.state, [root.uri for root in await context.roots()])
