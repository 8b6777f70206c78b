"""`Extension`: methods besides those of the protocol, with their capabilities, or another handling of what is there.

    server = Server(..., extensions=[skills(Library())])

It is a `Features` with a name: what it offers is declared on it as on a server, and joins what the server declares.
The methods of the protocol are one as well, CORE in `handlers`, so that nothing tells one kind from another.

There are no further types of results, and no lifespan of an extension: they come with the first one that needs them.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..errors import DeclarationError
from ..protocol.methods import OTHERWISE, Method
from ..protocol.records import record
from ..protocol.types.base import Params
from ..protocol.versions import V2024_11_05, Version
from .features import Features, Handler, State

if TYPE_CHECKING:
    from .running import Running

__all__ = ["Around", "Capability", "Extension"]

Around = Callable[[Method, Handler], Handler]
"""Given a method and who handles it, who handles it instead; this is asked once a run, when its first peer comes."""


@record
class Capability:
    """One capability that a server declares, where it has it."""

    path: tuple[str, ...]
    """Where it stands among the capabilities: `("tools",)`, or `("extensions", "org.example/own")`."""
    value: Callable[["Running[Any]"], Mapping[str, Any] | None]
    """What is declared, or None where this server does not have it."""
    first: Version = V2024_11_05
    """Of an extension, the version that its methods came with: peers of older ones are not told of it."""


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
        need, `handlers` who answers each of them. `around` is asked about all methods of the server; of several
        extensions the last one is outermost. `otherwise` handles all methods that nobody else does, which are none of
        the protocol's: the call has the name. Raises DeclarationError for a handler of no method."""
        super().__init__()
        strange = sorted(set(handlers or ()) - {method.name for method in methods})
        if strange:
            raise DeclarationError(f"the extension {name!r} handles {strange[0]!r}, which is none of its methods")
        self.name = name
        self.methods += methods
        self.handlers.update(handlers or {})
        if otherwise is not None:
            self.methods.append(Method(OTHERWISE, Params))
            self.handlers[OTHERWISE] = otherwise
        self.around = around
        self.declares = tuple(declares)
