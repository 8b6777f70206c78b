"""Limits on one peer, and on one call."""

from dataclasses import field, replace

from ...protocol.records import record


@record
class Limits:
    """Limits per connection, or per HTTP session, unless noted otherwise."""

    concurrent_calls: int = 64
    """Maximum number of calls that run at the same time; further calls wait."""
    waiting_calls: int = 100_000
    """Maximum number of waiting calls; further calls are refused."""
    call_bytes: int = 128 * 1_048_576
    """Maximum memory in bytes of the arguments of all calls, and of results that wait for slow peers, on all
    connections. If there may be several clients, each may use at most half of it."""
    subscriptions: int = 10_000
    """Maximum number of resource subscriptions."""
    streams: int = 64
    """Maximum number of open streams of `subscriptions/listen`, and of requests that wait for a task's result."""
    waiting_messages: int = 256
    """The number of unread messages of a slow peer beyond which the server reads nothing more from it."""
    waiting_bytes: int = 4 * 1_048_576
    """The size in bytes of unread notifications (progress, log messages etc.) beyond which nothing more is read."""
    result_bytes: int = 16 * 1_048_576
    """The size in bytes of unread results beyond which the server reads nothing more. A lower limit would slow down
    clients that send many calls at the same time."""
    roots_seconds: float = 10.0
    """The number of seconds that a client has to list its roots, if the server works only in these."""
    question_seconds: float = 600.0
    """The number of seconds that a user has to answer a question, or a client's model to complete a conversation."""
    drain_seconds: float = 5.0
    """The seconds that calls in progress have to finish when the peer ends its stream, or the server stops."""


@record
class CallLimits:
    """Limits on one call. The operator sets them; arguments of a model can only lower them.

    The defaults are below what hosts accept: Claude Desktop drops results of more than 1 MB, and its older builds
    calls of more than 60 seconds.
    """

    result_bytes: int = 900_000
    """Maximum size of the whole result, in bytes of JSON."""
    text_bytes: int | None = None
    """Maximum size of the text in the result, in bytes; None for the size that the host is known to show to its model
    without cuts (see `hosts.py`)."""
    page_bytes: int = field(init=False, default=0)
    """Maximum bytes of a page of text, with all other text of the result: the lower of the two limits above."""
    seconds: float = 45.0
    """The number of seconds after which the call is stopped."""
    entries: int = 10_000
    """Maximum number of list entries, rows or matches."""

    def __post_init__(self) -> None:
        text = self.result_bytes if self.text_bytes is None else min(self.text_bytes, self.result_bytes)
        object.__setattr__(self, "page_bytes", text)

    def with_seconds(self, seconds: float) -> "CallLimits":
        """Return the same limits with `seconds`."""
        return replace(self, seconds=seconds)

    def limit_entries(self, requested: int | None) -> int:
        """Return `requested`, but at most the maximum number of entries; the maximum if `requested` is None."""
        return self.entries if requested is None else min(requested, self.entries)
