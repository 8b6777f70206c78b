"""What one peer may take of a server, whatever it sends. Each is an option of every server."""

from ..protocol.records import record

__all__ = ["Limits"]


@record
class Limits:
    """Caps per connection or HTTP session."""

    concurrent_calls: int = 64
    """Calls running at once; more wait their turn."""
    waiting_calls: int = 100_000
    """Calls that may wait; more are refused."""
    subscriptions: int = 10_000
    """Resource subscriptions."""
    streams: int = 64
    """Listen streams open at once."""
    waiting_messages: int = 256
    """Messages not yet taken by a slow peer, before we stop reading what it sends."""
    roots_seconds: float = 10.0
    """Time for a client to name its roots, where a server works in these only."""
    drain_seconds: float = 5.0
    """Time for calls under way to finish when the peer ends its stream or the server stops."""
