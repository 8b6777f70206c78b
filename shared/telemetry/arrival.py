"""The arrival of an HTTP request, for the records of the calls that it carries."""

from contextvars import ContextVar

from ..protocol.records import record


@record
class Arrival:
    """The properties of the HTTP request that carried a call."""

    address: str
    session: str | None
    """A digest of the session id, since the id itself would give access to the session."""


arrival: ContextVar[Arrival | None] = ContextVar("arrival", default=None)
"""The arrival of the request that is being served, if it came over HTTP and is recorded."""
