"""What one call may cost. The operator sets the caps; a model's arguments can only tighten them.

The defaults stay under what hosts accept: results over 1 MB are dropped by Claude Desktop, and calls over
60 seconds by its older builds.
"""

from ..protocol.records import record

__all__ = ["Budget"]


@record
class Budget:
    """Caps for one call."""

    result_bytes: int = 900_000
    """The whole result as JSON."""
    seconds: float = 45.0
    """Wall time until the call is stopped."""
    entries: int = 10_000
    """List entries, rows, matches."""

    def entries_within(self, asked: int | None) -> int:
        """`asked` entries, or the cap where that is less or nothing was asked."""
        return self.entries if asked is None else min(asked, self.entries)
