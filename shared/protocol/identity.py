"""What a server says of itself in `initialize` and `server/discover`, and whom it serves."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .records import record
from .types.base import Implementation
from .versions import Version

__all__ = ["Identity", "Principal"]


@record
class Principal:
    """Somebody whom a transport has authenticated."""

    key: str
    """Who that is, as a short name that may be logged. Sessions, sealed states, and what is kept for later calls
    belong to it."""


@dataclass(frozen=True)
class Identity:
    """Name, instructions and capabilities, in the newest version's words; `shaping` fits them to older ones."""

    implementation: Implementation
    instructions: str | None = None
    """How to use the server, for the model; hosts cut it at 2 KiB."""
    capabilities: dict[str, Any] = field(default_factory=dict)
    since: Mapping[tuple[str, ...], Version] = field(default_factory=dict)
    """The version that an extension's methods came with, by its path among the capabilities."""

    @cached_property
    def server_info(self) -> dict[str, Any]:
        """The implementation as on the wire."""
        return self.implementation.to_wire()

    def has(self, path: tuple[str, ...]) -> bool:
        """Whether the capability `path` is declared."""
        node: Any = self.capabilities
        for name in path:
            if not isinstance(node, dict) or node.get(name) in (None, False):
                return False
            node = node[name]
        return True

    def capabilities_in(self, version: Version) -> dict[str, Any]:
        """What peers of a `version` with a handshake are told it can do.

        The map of extensions is in the schema of 2026-07-28 only; older versions allow capabilities they don't know,
        and the hosts of extensions speak those versions. So all get it, but for those whose methods came later.
        """
        extensions = {
            name: settings
            for name, settings in self.capabilities.get("extensions", {}).items()
            if self.since.get(("extensions", name), version).order <= version.order
        }
        others = {name: item for name, item in self.capabilities.items() if name != "extensions"}
        return {**others, "extensions": extensions} if extensions else others
