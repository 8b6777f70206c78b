"""Spans: what took how long, for whoever collects that. Where nobody does, to ask for one costs a look at a variable.

    with span("SELECT shop", {"db.operation.name": "SELECT"}, kind="client") as one:
        ...
        one.note("db.response.returned_rows", 7)

Names and attributes are those of OpenTelemetry's semantic conventions; nothing here knows its library. Never put
secrets, arguments or statements in them.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

Kind = Literal["internal", "client", "server"]
"""Whether it is work of this process, a request to another one, or the answer to one that came."""
Attributes = Mapping[str, str | int | float | bool]


class Span(Protocol):
    """A span that is open. An exception that leaves its block is its error, unless `fail` was told another."""

    def note(self, name: str, value: str | int | float | bool) -> None:
        """Adds an attribute."""

    def fail(self, kind: str, message: str = "") -> None:
        """Says that it failed: a short `kind`, of which there are few, and what the peer is told."""


class Tracer(Protocol):
    """Who collects spans."""

    def __call__(self, name: str, attributes: Attributes, kind: Kind) -> AbstractContextManager[Span]:
        """A span as long as the block, within the one that is current; it is the current one meanwhile."""


class _Nobody:
    """A span that nobody collects."""

    def note(self, name: str, value: str | int | float | bool) -> None:
        pass

    def fail(self, kind: str, message: str = "") -> None:
        pass


NOBODY: AbstractContextManager[Span] = nullcontext(_Nobody())
"""The span where nobody collects any."""
tracer: Tracer | None = None
"""Who collects the spans of this process, if anybody does: for who looks before a span is described."""


def span(name: str, attributes: Attributes, kind: Kind = "internal") -> AbstractContextManager[Span]:
    """A span as long as the block. It is entered once."""
    return NOBODY if tracer is None else tracer(name, attributes, kind)


def trace_by(collector: Tracer | None) -> None:
    """Has `collector` have all spans of this process from now on; None for nobody."""
    global tracer  # noqa: PLW0603 - there is one process, and what asks for spans knows nobody who collects them
    tracer = collector
