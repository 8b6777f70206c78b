"""What a server says of itself in `initialize` and `server/discover`."""

from dataclasses import dataclass, field
from typing import Any

from .types.base import Implementation

__all__ = ["Identity"]


@dataclass(frozen=True, slots=True)
class Identity:
    """Name, instructions and capabilities, in the newest version's words; `shaping` fits them to older ones."""

    implementation: Implementation
    instructions: str | None = None
    """How to use the server, for the model; hosts cut it at 2 KiB."""
    capabilities: dict[str, Any] = field(default_factory=dict)

    def has(self, path: tuple[str, ...]) -> bool:
        """Whether the capability `path` is declared."""
        node: Any = self.capabilities
        for name in path:
            if not isinstance(node, dict) or node.get(name) in (None, False):
                return False
            node = node[name]
        return True
