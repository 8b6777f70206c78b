"""The list of what a server understands: one row per method.

A row says who sends it, in which versions it exists, which capability it needs and which params it takes.
The absence of a row is the gate: no code asks "is this method known in that version" in any other way.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from .types.base import Params
from .types.lifecycle import DiscoverParams, InitializeParams, SetLevelParams
from .types.prompts import CompleteParams, GetPromptParams
from .types.resources import ListenParams, ReadResourceParams, UriParams
from .types.tools import CallToolParams, ListParams
from .versions import NEWEST, NEWEST_HANDSHAKE, V2024_11_05, V2026_07_28, Version

__all__ = ["REQUESTS", "Method", "MethodTable"]


@dataclass(frozen=True, slots=True)
class Method:
    """A request that clients send."""

    name: str
    params: type[Params]
    first: Version = V2024_11_05
    last: Version = NEWEST
    capability: tuple[str, ...] = ()
    """The server capability that must be declared, e.g. `("resources", "subscribe")`."""
    cacheable: bool = False
    """Its result carries `ttlMs` and `cacheScope` (2026-07-28, Caching)."""
    multi_round: bool = False
    """It may be answered by `input_required` (2026-07-28, multi-round-trip requests)."""

    def exists_in(self, version: Version) -> bool:
        """Whether `version` has this method."""
        return self.first.order <= version.order <= self.last.order


REQUESTS = (
    Method("initialize", InitializeParams, last=NEWEST_HANDSHAKE),
    Method("ping", Params, last=NEWEST_HANDSHAKE),
    Method("server/discover", DiscoverParams, first=V2026_07_28, cacheable=True),
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
    Method("logging/setLevel", SetLevelParams, last=NEWEST_HANDSHAKE, capability=("logging",)),
    Method("subscriptions/listen", ListenParams, first=V2026_07_28),
)


class MethodTable:
    """The standard rows and those a server adds."""

    def __init__(self, custom: Iterable[Method] = ()) -> None:
        self._rows = {row.name: row for row in (*REQUESTS, *custom)}

    def find(self, name: str, version: Version) -> Method | None:
        """The row of that name, if `version` has it."""
        row = self._rows.get(name)
        return row if row is not None and row.exists_in(version) else None
