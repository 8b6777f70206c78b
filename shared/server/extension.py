"""`Extension`: methods besides those of the protocol, with their capabilities, or other handlers for existing
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
from ..protocol.identity import EVERYWHERE, Principal, Span
from ..protocol.methods import FALLBACK, Method
from ..protocol.records import record
from ..protocol.types.base import Params
from ..protocol.types.resources import SubscriptionFilter
from .dispatch.context import Context
from .features import AnyRun, AtOnce, Features, Handler, State

Around = Callable[[Method, Handler], Handler]
"""Takes a method and its handler, and returns the handler to use instead; called when the first peer of a run
connects."""

Lifespan = Callable[[AnyRun], AbstractAsyncContextManager[object]]
"""Opens what one run needs, before its first peer connects, and closes it while all calls still exist."""
Follow = Callable[[], Coroutine[Any, Any, None]]
"""Sends events to a listen stream, until it is cancelled or no more can come."""
Listens = Callable[[AnyRun, Context[Any], SubscriptionFilter], Awaitable[tuple[Mapping[str, object], Follow] | None]]
"""Takes the filter of a listen stream, and returns the part that it serves, for the acknowledgement, and the
function that sends the events; None if it serves nothing of the filter."""

AroundAtOnce = Callable[[Method, AtOnce], AtOnce]
"""Takes a method and its handler that answers at once, and returns the one to use instead. It has the effects of
`Around` if an answer is returned, and none otherwise."""

Scopes = Callable[[AnyRun], tuple[Sequence[str], Sequence[str]]]
"""Returns the scopes of tokens that a server knows, and those to request at first."""


@record
class Capability:
    """One capability that a server declares, if it has it."""

    path: tuple[str, ...]
    """The path among the capabilities: `("tools",)`, or `("extensions", "org.example/own")`."""
    value: Callable[[AnyRun], Mapping[str, Any] | None]
    """Returns the declared value, or None if this server does not have it."""
    span: Span = EVERYWHERE
    """The versions in which it is declared: not to peers of versions older than its methods."""


class Extension(Features[State]):
    """An addition to a server by `Server(extensions=...)`, or to one run of it by `Opening.extend`."""

    def __init__(
        self,
        name: str,
        *,
        methods: Sequence[Method] = (),
        handlers: Mapping[str, Handler] | None = None,
        around: Around | None = None,
        declares: Sequence[Capability] = (),
        otherwise: Handler | None = None,
    ) -> None:
        """A server has one extension of each `name`. `methods` say in which versions they exist and which capability
        they need, `handlers` maps the name of a method or of its `handler` to its handler. `around` is called for
        all methods of the server; of several extensions the last one is outermost. `otherwise` handles all methods
        without another handler that are not the protocol's: the call has the name. Raises DeclarationError for a
        handler of no method."""
        super().__init__()
        strange = sorted(set(handlers or ()) - {method.handler for method in methods})
        if strange:
            raise DeclarationError(f"the extension {name!r} handles {strange[0]!r}, which is not one of its methods")
        self.name = name
        self.methods += methods
        self.handlers.update(handlers or {})
        if otherwise is not None:
            self.methods.append(Method(FALLBACK, Params))
            self.handlers[FALLBACK] = otherwise
        self.around = around
        self.around_at_once: AroundAtOnce | None = None
        """The counterpart of `around` for handlers that answer at once; without it, requests whose handler `around`
        replaces are not answered at once."""
        self.at_once: dict[Handler, AtOnce] = {}
        """The counterparts of handlers that may answer at once."""
        self.outermost = 0
        """The extension with the highest value is outermost, in any order; of equal ones the last."""
        self.declares = tuple(declares)
        self.hides: Callable[[AnyRun, Principal | None, str], bool] | None = None
        """Returns True if the tool of that name does not exist for that principal, whatever its token allows."""
        self.open_resources: Collection[str] = ()
        """The URIs of public resources, which every client may read."""
        self.lifespan: Lifespan | None = None
        """Opens what one run of the server needs."""
        self.listens: Listens | None = None
        """Called for each listen stream."""
        self.scopes: Scopes | None = None
        """Returns the scopes that tokens may need."""
