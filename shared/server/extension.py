"""`Extension`: methods in addition to those of the protocol, with their capabilities, or other handlers for existing
methods.

    server = Server(..., extensions=[skills(Library())])

It is a `Features` with a name: features are declared on it as on a server, and join those of the server. The methods
of the protocol are an extension as well, CORE in `handlers`, so both are handled alike. Its lifespan opens what one
run of the server needs, found in `Run.opened`.
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from ..errors import DeclarationError
from ..protocol.identity import ALL_PEERS, Audience, Principal
from ..protocol.methods import FALLBACK, Method
from ..protocol.records import record
from ..protocol.types.base import Params
from ..protocol.types.resources import SubscriptionFilter
from .dispatch.context import Context
from .features import AnyRun, AtOnce, Features, Handler, State

Around = Callable[[Method, Handler], Handler]
"""Accepts a method and its handler, and returns the handler to use instead; called when the first peer of a run
connects."""

Lifespan = Callable[[AnyRun], AbstractAsyncContextManager[object]]
"""Opens the resources that one run needs, before its first peer connects, and closes them before the calls are
discarded."""
Follow = Callable[[], Coroutine[Any, Any, None]]
"""Sends events to a listen stream, until it is cancelled or there can be no more events."""
ListenHandler = Callable[
    [AnyRun, Context[Any], SubscriptionFilter], Awaitable[tuple[Mapping[str, object], Follow] | None]
]
"""Accepts the filter of a listen stream, and returns the part of the filter that it serves, for the acknowledgement,
and the function that sends the events; None if it serves no part of the filter."""

AroundAtOnce = Callable[[Method, AtOnce], AtOnce]
"""Accepts a method and its handler that answers at once, and returns the handler to use instead. The result has the
effects of `Around` if it returns an answer, and no effects otherwise."""

Scopes = Callable[[AnyRun], tuple[Sequence[str], Sequence[str]]]
"""Returns the scopes of tokens that a server knows, and those to request at first."""


@record
class Capability:
    """A capability that a server may declare."""

    path: tuple[str, ...]
    """The path among the capabilities: `("tools",)`, or `("extensions", "org.example/own")`."""
    value: Callable[[AnyRun], Mapping[str, Any] | None]
    """Returns the declared value, or None if this server lacks the capability."""
    audience: Audience = ALL_PEERS
    """The versions in which the capability is declared; it is hidden from peers of versions older than its
    methods."""


class Extension(Features[State]):
    """An addition to a server, through `Server(extensions=...)`, or to one of its runs, through `Opening.extend`."""

    def __init__(
        self,
        name: str,
        *,
        methods: Sequence[Method] = (),
        handlers: Mapping[str, Handler] | None = None,
        around: Around | None = None,
        declares: Sequence[Capability] = (),
        fallback: Handler | None = None,
    ) -> None:
        """A server has one extension of each `name`. `methods` say in which versions they exist and which capability
        they need, `handlers` maps the name of a method or of its `handler` to its handler. `around` is called for all
        methods of the server; of several extensions the last one is outermost. `fallback` handles all methods that
        have no other handler and are not defined by the protocol; the call contains the name of the method. Raises
        DeclarationError for a handler without a method."""
        super().__init__()
        unknown = sorted(set(handlers or ()) - {method.handler for method in methods})
        if unknown:
            raise DeclarationError(f"the extension {name!r} handles {unknown[0]!r}, which is not one of its methods")
        self.name = name
        self.methods += methods
        self.handlers.update(handlers or {})
        if fallback is not None:
            self.methods.append(Method(FALLBACK, Params))
            self.handlers[FALLBACK] = fallback
        self.around = around
        self.around_at_once: AroundAtOnce | None = None
        """The counterpart of `around` for handlers that answer at once; without it, requests whose handler `around`
        replaces are not answered at once."""
        self.at_once: dict[Handler, AtOnce] = {}
        """The counterparts of handlers that may answer at once."""
        self.rank = 0
        """The extension with the highest value is outermost, in whatever order they were added; among equal values,
        the last."""
        self.declares = tuple(declares)
        self.hides_tool: Callable[[AnyRun, Principal | None, str], bool] | None = None
        """Returns True if the tool with that name is hidden from that principal, whatever its token allows."""
        self.open_resources: Collection[str] = ()
        """The URIs of public resources, which every client may read."""
        self.lifespan: Lifespan | None = None
        """Opens the resources that one run of the server needs."""
        self.listen: ListenHandler | None = None
        """Called for each listen stream."""
        self.scopes: Scopes | None = None
        """Returns the scopes that tokens may need."""
