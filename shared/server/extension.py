"""`Extension`: methods besides those of the protocol, with their capabilities, or another handling of what is there.

    server = Server(..., extensions=[skills(Library())])

It is a `Features` with a name: what it offers is declared on it as on a server, and joins what the server declares.
The methods of the protocol are one as well, CORE in `handlers`, so that nothing tells one kind from another.

What lives as long as one run of the server is opened by the extension's lifespan, and found in `Run.opened`.
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from ..errors import DeclarationError
from ..protocol.identity import EVERYWHERE, Principal, Span
from ..protocol.methods import OTHERWISE, Method
from ..protocol.records import record
from ..protocol.session.events import Call
from ..protocol.types.base import Params
from ..protocol.types.resources import SubscriptionFilter
from ..protocol.types.tools import CallToolParams
from .dispatch.context import Context
from .features import AnyRun, Features, Handler, State

Around = Callable[[Method, Handler], Handler]
"""Given a method and who handles it, who handles it instead; this is asked when the first peer of a run comes."""

Lifespan = Callable[[AnyRun], AbstractAsyncContextManager[object]]
"""Opens what one run needs, before its first peer comes, and closes it while all calls are still there."""
Follow = Callable[[], Coroutine[Any, Any, None]]
"""Tells a listen stream what comes, until it is cancelled or nothing more can come."""
Listens = Callable[[AnyRun, Context[Any], SubscriptionFilter], Awaitable[tuple[Mapping[str, object], Follow] | None]]
"""Takes the filter of a listen stream: what it serves of that, as it is acknowledged, and what then tells of it; None
where it serves nothing of it."""

Passes = Callable[[AnyRun, Call, CallToolParams], bool]
"""Whether the call of a tool goes by an extension as if there were nothing `around` it."""

Scopes = Callable[[AnyRun], tuple[Sequence[str], Sequence[str]]]
"""The scopes of tokens that a server knows, and those that are worth asking for at first."""


@record
class Capability:
    """One capability that a server declares, where it has it."""

    path: tuple[str, ...]
    """Where it stands among the capabilities: `("tools",)`, or `("extensions", "org.example/own")`."""
    value: Callable[[AnyRun], Mapping[str, Any] | None]
    """What is declared, or None where this server does not have it."""
    span: Span = EVERYWHERE
    """Whom it is declared to. Peers of versions older than its methods are not told of it."""


class Extension(Features[State]):
    """What joins a server by `Server(extensions=...)`, or one run of it by `Opening.extend`."""

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
        """A server has one of each `name`. `methods` say in which versions they exist and which capability they
        need, `handlers` who answers each of them, by the name of the method or of its `handler`. `around` is asked
        about all methods of the server; of several extensions the last one is outermost. `otherwise` handles all
        methods that nobody else does, which are none of the protocol's: the call has the name. Raises
        DeclarationError for a handler of no method."""
        super().__init__()
        strange = sorted(set(handlers or ()) - {method.handler for method in methods})
        if strange:
            raise DeclarationError(f"the extension {name!r} handles {strange[0]!r}, which is not one of its methods")
        self.name = name
        self.methods += methods
        self.handlers.update(handlers or {})
        if otherwise is not None:
            self.methods.append(Method(OTHERWISE, Params))
            self.handlers[OTHERWISE] = otherwise
        self.around = around
        self.passes: Passes | None = None
        """Tells of each call of a tool, where `around` has made another handler for them; while nobody does, tools
        give none of their values at once."""
        self.outermost = 0
        """Of several extensions the one with the highest is outermost, whenever they came; of equal ones the last."""
        self.declares = tuple(declares)
        self.hides: Callable[[AnyRun, Principal | None, str], bool] | None = None
        """Whether the tool of that name is not there for that principal, whatever its token allows."""
        self.open_resources: Collection[str] = ()
        """The URIs of what whoever is served may read, for there is nothing in it that anybody could not know."""
        self.lifespan: Lifespan | None = None
        """Opens what one run of the server needs."""
        self.listens: Listens | None = None
        """Is asked about each listen stream."""
        self.scopes: Scopes | None = None
        """Says what tokens may have to allow."""
