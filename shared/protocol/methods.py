"""The table of the methods that a server supports: one row per method.

A row contains the versions in which the method exists, the server capability that it requires, and the params that it
accepts. A method without a row does not exist for a peer: no other code checks whether a version has a method.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from .identity import Identity, Peer
from .records import record
from .types.base import Params
from .types.client import DiscoverParams, InitializeParams, SetLevelParams
from .types.prompts import CompleteParams, GetPromptParams
from .types.resources import ListenParams, ReadResourceParams, UriParams
from .types.tools import CallToolParams, ListParams
from .versions import NEWEST, NEWEST_HANDSHAKE, V2024_11_05, V2026_07_28, VERSIONS, Version


@record
class Method:
    """A method that clients call, with the versions from `first` to `last` in which it exists."""

    name: str
    params: type[Params]
    first: Version = V2024_11_05
    last: Version = NEWEST
    capability: tuple[str, ...] = ()
    """The server capability that must be declared, e.g. `("resources", "subscribe")`."""
    cacheable: bool = False
    """True if the result carries `ttlMs` and `cacheScope` (2026-07-28, Caching)."""
    multi_round: bool = False
    """True if the method may be answered with `input_required` (2026-07-28, multi-round-trip requests)."""
    built_in: bool = False
    """True if the session itself answers the method: it concerns the protocol, not a feature of the server."""
    is_stream: bool = False
    """True if the request stays open until one side ends it. It does not count as a call in progress."""
    handler: str = ""
    """The name of the handler; by default the name of the method."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "handler", self.handler or self.name)


SET_LEVEL = Method("logging/setLevel", SetLevelParams, last=NEWEST_HANDSHAKE, capability=("logging",))
"""The row for a server that has its own handler for this method, because it forwards the level to other servers."""

REQUESTS = (
    Method("initialize", InitializeParams, last=NEWEST_HANDSHAKE, built_in=True),
    Method("ping", Params, last=NEWEST_HANDSHAKE, built_in=True),
    Method("server/discover", DiscoverParams, first=V2026_07_28, cacheable=True, built_in=True),
    Method("tools/list", ListParams, capability=("tools",), cacheable=True),
    Method("tools/call", CallToolParams, capability=("tools",), multi_round=True),
    Method("resources/list", ListParams, capability=("resources",), cacheable=True),
    Method("resources/templates/list", ListParams, capability=("resources",), cacheable=True),
    Method("resources/read", ReadResourceParams, capability=("resources",), cacheable=True, multi_round=True),
    Method("resources/subscribe", UriParams, last=NEWEST_HANDSHAKE, capability=("resources", "subscribe")),
    Method("resources/unsubscribe", UriParams, last=NEWEST_HANDSHAKE, capability=("resources", "subscribe")),
    Method("prompts/list", ListParams, capability=("prompts",), cacheable=True),
    Method("prompts/get", GetPromptParams, capability=("prompts",), multi_round=True),
    Method("completion/complete", CompleteParams, capability=("completions",)),
    replace(SET_LEVEL, built_in=True),
    Method("subscriptions/listen", ListenParams, first=V2026_07_28, is_stream=True),
)


FALLBACK = "*"
"""The name of a row that applies to all methods that have no row and are not part of the protocol."""
PROTOCOL_METHODS = frozenset(row.name for row in REQUESTS)

MethodTable = Mapping[tuple[str, Version], Method]
"""The rows of one server, by name and version."""


def method_table(identity: Identity, methods: Iterable[Method] = REQUESTS) -> MethodTable:
    """Return the rows of `methods` whose capability the server declares, for each version in which they exist. If
    several rows have the same name and version, the last one applies."""
    return {
        (method.name, version): method
        for method in methods
        if identity.has(method.capability)
        for version in VERSIONS
        if method.first.order <= version.order <= method.last.order
    }


def find_method(methods: MethodTable, name: str, peer: Peer) -> Method | None:
    """Return the row of the method `name` for `peer`; None if the method does not exist in its version."""
    row = methods.get((name, peer.version))
    if row is not None:
        return row
    fallback = methods.get((FALLBACK, peer.version))
    # A method of the protocol that this version does not have, such as `ping`, must not get the fallback.
    if fallback is None or name in PROTOCOL_METHODS:
        return None
    return replace(fallback, name=name, handler=FALLBACK)
