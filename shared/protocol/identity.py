"""What a server says of itself in `initialize` and `server/discover`."""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .types.base import Implementation

__all__ = ["Identity"]


@dataclass(frozen=True)
class Identity:
    """Name, instructions and capabilities, in the newest version's words; `shaping` fits them to older ones."""

    implementation: Implementation
    instructions: str | None = None
    """How to use the server, for the model; hosts cut it at 2 KiB."""
    capabilities: dict[str, Any] = field(default_factory=dict)

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
