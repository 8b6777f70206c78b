"""`Extension`: an addition to a server, such as further methods with their capabilities, or other handlers for
existing methods.

    server = Server(..., extensions=[skills(Library())])

An extension is a `Features` with a name: features are declared on it as on a server, and are added to those of the
server. The handlers of the protocol's own methods are an extension too, `CORE` in `handlers/core.py`. The lifespan of
an extension opens what it needs for one run of the server; the value that it yields is in `Run.opened`.
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
"""A function that accepts a method and its handler, and returns the handler to use instead. It is called when the
first peer of a run connects."""

Lifespan = Callable[[AnyRun], AbstractAsyncContextManager[object]]
"""A context manager that opens what the extension needs for one run, before the first peer connects, and closes it
when the run ends. Calls may still be in progress then, and must cope with that."""
Follow = Callable[[], Coroutine[Any, Any, None]]
"""A function that sends events to a stream of `subscriptions/listen`, until it is cancelled or no more can come."""
ListenHandler = Callable[
    [AnyRun, Context[Any], SubscriptionFilter], Awaitable[tuple[Mapping[str, object], Follow] | None]
]
"""A function that accepts the filter of a stream of `subscriptions/listen`. It returns the fields of the filter that
the extension supports, for the acknowledgement, and the function that sends the events; None if it supports none."""

AroundAtOnce = Callable[[Method, AtOnce], AtOnce]
"""The same as `Around`, for a handler that answers at once, without awaiting. If the new handler returns an answer,
it must have had all effects of the one from `Around`; if it returns None, it must have had none."""

Scopes = Callable[[AnyRun], tuple[Sequence[str], Sequence[str]]]
"""A function that returns all OAuth scopes that calls of a server may need, and those to request first."""


@record
class Capability:
    """A capability that a server may declare."""

    path: tuple[str, ...]
    """The path in the capabilities: `("tools",)`, or `("extensions", "org.example/own")`."""
    value: Callable[[AnyRun], Mapping[str, Any] | None]
    """A function that returns the value to declare, or None if this run does not have the capability."""
    audience: Audience = ALL_PEERS
    """The peers to which the capability is declared: only those whose version has its methods."""


class Extension(Features[State]):
    """An addition to a server, with `Server(extensions=...)`, or to one of its runs, with `Opening.extend`."""

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
        """`name` is unique in a server. `methods` describes the added methods. `handlers` has a handler for each, by
        `Method.handler` (by default the name of the method). `around` may replace the handler of each method of the
        server. If several extensions do so, the last one added is outermost. `fallback` handles all methods that have
        no handler and are not part of the protocol; the call contains the name of the method. Raises
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
        """The counterpart of `around` for handlers that answer at once. If it is None, requests whose
        handler was replaced by `around` are never answered at once."""
        self.at_once: dict[Handler, AtOnce] = {}
        """For a handler, the function that may answer its requests at once."""
        self.rank = 0
        """An extension with a higher rank wraps those with a lower one, in whatever order they were added. Of those
        with equal ranks, the last one added is outermost."""
        self.declares = tuple(declares)
        self.hides_tool: Callable[[AnyRun, Principal | None, str], bool] | None = None
        """A function that returns True if the tool with that name is hidden from that principal, even if its token
        has all scopes."""
        self.open_resources: Collection[str] = ()
        """The URIs of resources that every client may read, without any scope."""
        self.lifespan: Lifespan | None = None
        """Opens what the extension needs for one run of the server."""
        self.listen: ListenHandler | None = None
        """Handles the filter of each stream of `subscriptions/listen`."""
        self.scopes: Scopes | None = None
        """Returns the OAuth scopes of the server."""
