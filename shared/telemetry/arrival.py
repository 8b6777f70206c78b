"""The HTTP request in which a call arrived, for the audit log and for spans."""

from contextvars import ContextVar

from ..protocol.records import record


@record
class Arrival:
    """Properties of the HTTP request in which a call arrived."""

    address: str
    session: str | None
    """A digest of the session id. The id itself must not be logged, since it gives access to the session."""


arrival: ContextVar[Arrival | None] = ContextVar("arrival", default=None)
"""The arrival of the request that is being served; None if it did not come over HTTP, or if nothing records it."""
