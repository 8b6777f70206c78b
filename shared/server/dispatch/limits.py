"""Limits on one peer, and on one call."""

from dataclasses import field, replace

from ...protocol.records import record


@record
class Limits:
    """Caps per connection or HTTP session, unless noted otherwise."""

    concurrent_calls: int = 64
    """Maximum number of calls running at once; further calls wait their turn."""
    waiting_calls: int = 100_000
    """Maximum number of waiting calls; further calls are refused."""
    call_bytes: int = 128 * 1_048_576
    """Memory of the arguments of all calls in progress and waiting, and of results that wait for slow peers, on all
    connections. One client may use at most half of it if there may be other clients."""
    subscriptions: int = 10_000
    """Resource subscriptions."""
    streams: int = 64
    """Listen streams open at once, together with the results of tasks that are waited for."""
    waiting_messages: int = 256
    """Messages that a slow peer may leave unread before the server stops reading from it."""
    waiting_bytes: int = 4 * 1_048_576
    """Bytes of progress, log messages and other notifications among the unread messages."""
    result_bytes: int = 16 * 1_048_576
    """Bytes of results among the unread messages; a lower limit would slow down a client that sends many calls at
    once."""
    roots_seconds: float = 10.0
    """Seconds for a client to list its roots, if the server works only in the roots."""
    question_seconds: float = 600.0
    """Seconds for the user of a client to answer a question, and for its model to complete a conversation."""
    drain_seconds: float = 5.0
    """Seconds for calls in progress to finish when the peer ends its stream or the server stops."""


@record
class CallLimits:
    """Caps for one call. The operator sets them; a model's arguments can only lower them.

    The defaults stay under what hosts accept: results over 1 MB are dropped by Claude Desktop, and calls over 60
    seconds by its older builds.
    """

    result_bytes: int = 900_000
    """Bytes of the whole result as JSON."""
    text_bytes: int | None = None
    """Bytes of the text in the result; None for the size that the host is known to show its model without cuts (see
    `hosts`)."""
    page_bytes: int = field(init=False, default=0)
    """Bytes of a page of text, including everything that accompanies the page."""
    seconds: float = 45.0
    """Wall time until the call is stopped."""
    entries: int = 10_000
    """Maximum number of list entries, rows or matches."""

    def __post_init__(self) -> None:
        text = self.result_bytes if self.text_bytes is None else min(self.text_bytes, self.result_bytes)
        object.__setattr__(self, "page_bytes", text)

    def with_seconds(self, seconds: float) -> "CallLimits":
        """Return the same limits with `seconds`."""
        return replace(self, seconds=seconds)

    def limit_entries(self, requested: int | None) -> int:
        """Return `requested`, or the cap if that is less or `requested` is None."""
        return self.entries if requested is None else min(requested, self.entries)
